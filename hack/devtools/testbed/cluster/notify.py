"""Waits for a daemon that reports readiness through systemd's notify protocol, without polling."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from devtools.testbed.cluster import shell
from devtools.testbed.cluster.errors import ClusterError


@contextlib.contextmanager
def ready_socket(path: Path) -> Iterator[socket.socket]:
    """The datagram socket for NOTIFY_SOCKET, removed when the context exits."""
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(path))
        try:
            yield receiver
        finally:
            path.unlink(missing_ok=True)


def wait_ready(ready: socket.socket, child: subprocess.Popen[bytes], log: Path, name: str, timeout: float) -> None:
    """Wait for READY=1. If the daemon exits first or is not ready in time, kill it and raise ClusterError."""
    ended = os.pidfd_open(child.pid)
    try:
        while True:
            readable, _, _ = select.select([ready.fileno(), ended], [], [], timeout)
            if ready.fileno() in readable:
                if b"READY=1" in ready.recv(4096):
                    return
                continue
            child.kill()
            child.wait()
            what = "exited during startup" if readable else f"was not ready after {timeout:.0f} s"
            raise ClusterError(f"{name} {what}:\n{shell.tail(log.read_text(errors='replace'))}", f"see {log}")
    finally:
        os.close(ended)
