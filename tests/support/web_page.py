"""`dljob ui` as a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
