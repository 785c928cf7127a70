"""Fork the fork server from this process before it has threads, so that the two share the libraries that both use.

The Kubernetes client and what it imports take 25 MiB. Two processes that import them have them twice; a process and its
fork share the pages that neither writes to, about 14 MiB of them. Only the first fork server begins this way: once this
process has threads, a fork could copy a locked lock, and `client` starts the next one with exec.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_SHARED = (
    "kubernetes.client",
    "kubernetes.config",
    "dljob_operator.runner.client",
    "dljob_operator.runner.fork_server",
)
"""What both processes import. Nothing of the collection: in the fork server Ansible must load it."""
_CHUNK = 64 * 1024
_MOST_FDS = 8
_WAIT_INTERVAL = 0.02  # seconds between two checks of a process that is about to end; older kernels lack pidfd_open


class Preforked:
    """A child process that waits to become the fork server, and then that process. It ends with this process."""

    def __init__(self, pid: int, channel: socket.socket) -> None:
        self.pid = pid
        self._channel = channel
        self._code: int | None = None

    def become_fork_server(self, environ: Mapping[str, str], fds: Sequence[int]) -> None:
        """Make it serve the first of ``fds``, a stream socket. It gets them all, with the numbers that they have here.

        Raises OSError if it has ended; then `wait` returns immediately.
        """
        order = json.dumps({"environ": dict(environ), "fds": list(fds)}).encode()
        with self._channel as channel:
            try:
                socket.send_fds(channel, [b"!"], fds)
                channel.sendall(order)
            except OSError:
                self.kill()
                self.wait()
                raise

    def kill(self) -> None:
        if self._code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code, or the negative number of the signal that ended it.

        Raises TimeoutError if it still runs after ``timeout`` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while self._code is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG if timeout is not None else 0)
            except ChildProcessError:  # this process was started with SIGCHLD ignored, so the kernel has reaped it
                self._code = 0
                break
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
            elif deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"process {self.pid} still runs after {timeout} s")
            else:
                time.sleep(_WAIT_INTERVAL)
        return self._code


def prefork() -> Preforked | None:
    """Import what both processes use and fork. The process must have no threads.

    Returns None where the system cannot: on another one than Linux, or where it has no memory for a process.
    """
    if not sys.platform.startswith("linux"):
        return None
    for name in _SHARED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # otherwise the first garbage collection of either process writes to all of these objects
    ours, theirs = socket.socketpair()
    try:
        pid = os.fork()
    except OSError:
        ours.close()
        theirs.close()
        return None
    if pid == 0:
        from dljob_operator.runner.fork_server import exit_after

        ours.close()
        exit_after(lambda: _serve(theirs) == 0)
    theirs.close()
    return Preforked(pid, ours)


def _serve(channel: socket.socket) -> int:
    """Wait for the order of `Preforked.become_fork_server` and follow it; returns the exit code."""
    os.setsid()  # only the engine handles Ctrl-C from the terminal
    with Path(os.devnull).open("r+b") as null:
        os.dup2(null.fileno(), 0)
        os.dup2(2 if sys.__stderr__ else null.fileno(), 1)
    with channel:
        begin, received, _, _ = socket.recv_fds(channel, 1, _MOST_FDS)
        pieces = []
        while piece := channel.recv(_CHUNK):
            pieces.append(piece)
    if not begin:
        return 0  # this process was not needed
    order = json.loads(b"".join(pieces))
    _renumber(received, order["fds"])
    os.environ.clear()
    os.environ.update(order["environ"])
    _leave_working_directory()
    from dljob_operator.runner import fork_server

    return fork_server.main([str(order["fds"][0])])


def _renumber(fds: Sequence[int], wanted: Sequence[int]) -> None:
    """Give the open ``fds`` the ``wanted`` numbers."""
    above = max(wanted) + 1
    moved = []
    for fd in fds:
        moved.append(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, above))
        os.close(fd)
    for fd, number in zip(moved, wanted, strict=True):
        os.dup2(fd, number, inheritable=False)
        os.close(fd)


def _leave_working_directory() -> None:
    """Do not import from the working directory or the folder of a script, which Python puts first on its path."""
    package = str(Path(__file__).parents[2])
    others = sys.path if sys.flags.safe_path else sys.path[1:]
    sys.path[:] = [package, *others]
