"""`dljob ui` as a process, of a user or as in the cluster."""

from __future__ import annotations

import base64
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import yaml

from support.live_jobs import until


@contextmanager
def serving(kubeconfig: Path, *words: str) -> Iterator[tuple[str, list[str]]]:
    """The address with the token, and the lines that were printed until then."""
    command = [sys.executable, "-u", "-m", "dljob", "ui", "--no-browser", *words]
    environ = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = [process.stdout.readline()]
            while not said[-1].startswith("Open "):
                assert said[-1], "it has ended"
                said.append(process.stdout.readline())
            yield said[-1].split()[1], said
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(20) is not None


@contextmanager
def serving_in_cluster(kubeconfig: Path, folder: Path) -> Iterator[str]:
    """The page as in a pod, whose process has no credentials; gives its address. ``folder`` is its home."""
    config = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
    server = urlsplit(config["server"])
    ca = folder / "ca.crt"
    ca.write_bytes(base64.b64decode(config["certificate-authority-data"]))
    with socket.create_server(("127.0.0.1", 0)) as free:
        host = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-m", "dljob", "ui", "--in-cluster", "--address", host, "--host", host]
    environ = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"} | {
        "HOME": str(folder),
        "KUBERNETES_SERVICE_HOST": str(server.hostname),
        "KUBERNETES_SERVICE_PORT": str(server.port),
    }
    with subprocess.Popen([*command, "--ca", str(ca), "--insecure-cookie"], env=environ) as process:
        try:
            until(lambda: process.poll() is not None or _is_up(f"http://{host}/healthz"))
            yield f"http://{host}"
        finally:
            process.terminate()
            assert process.wait(20) in (0, -signal.SIGTERM)


def _is_up(address: str) -> bool:
    try:
        return httpx2.get(address).status_code == 200
    except httpx2.TransportError:
        return False
