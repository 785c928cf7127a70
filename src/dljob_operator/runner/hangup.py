"""Ends a process with the one at the other end of its socket, while it is busy with something else than the socket.

To load Ansible takes seconds, and a minute where processors are scarce: an operator that is killed again and again
would start its next fork server beside those that still load. A signal and no thread, because of the forks.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import socket
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def ends_this_process(connection: socket.socket, clean_up: Callable[[], object]) -> Iterator[None]:
    """In the context, call ``clean_up`` and exit as soon as the other end has closed the socket."""

    def check(*_: object) -> None:
        poll = select.poll()
        poll.register(connection, 0)  # reports only a hang-up or an error
        if poll.poll(0):
            clean_up()
            os._exit(0)

    signal.signal(signal.SIGIO, check)
    fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
    flags = fcntl.fcntl(connection, fcntl.F_GETFL)
    fcntl.fcntl(connection, fcntl.F_SETFL, flags | os.O_ASYNC)
    try:
        check()
        yield
    finally:
        fcntl.fcntl(connection, fcntl.F_SETFL, flags)
        signal.signal(signal.SIGIO, signal.SIG_DFL)
