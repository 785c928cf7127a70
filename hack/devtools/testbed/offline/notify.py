"""Starts a daemon that reports readiness through systemd's notify protocol, without polling."""

from __future__ import annotations

import os
import select
import socket
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from devtools.testbed.base import process, shell
from devtools.testbed.base.errors import ClusterError


def start(
    command: Sequence[str | Path],
    log: Path,
    ready: Path,
    timeout: float,
    env: Mapping[str, str],
    *,
    pass_fds: Collection[int] = (),
    record: Callable[[process.ProcessId], object] = lambda _: None,
) -> subprocess.Popen[bytes]:
    """Start the daemon, whose identity ``record`` gets at once, and wait for READY=1 on the socket ``ready``.

    If the daemon exits first or is not ready in time, kill it and raise ClusterError.
    """
    ready.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(ready))
        child = process.start(command, log, env={**env, "NOTIFY_SOCKET": str(ready)}, pass_fds=pass_fds)
        try:
            record(process.identity(child))
            _wait(receiver, child, log, timeout)
        except BaseException:
            child.kill()
            child.wait()
            raise
        finally:
            ready.unlink(missing_ok=True)
    return child


def _wait(receiver: socket.socket, child: subprocess.Popen[bytes], log: Path, timeout: float) -> None:
    ended = os.pidfd_open(child.pid)
    try:
        while True:
            readable, _, _ = select.select([receiver.fileno(), ended], [], [], timeout)
            if receiver.fileno() not in readable:
                what = "exited during startup" if readable else f"was not ready after {timeout:.0f} s"
                raise ClusterError(f"{log.stem} {what}:\n{shell.tail(log.read_text(errors='replace'))}", f"see {log}")
            if b"READY=1" in receiver.recv(4096):
                return
    finally:
        os.close(ended)
