"""Handle signals on a separate thread.

Python calls a signal handler on the main thread only, as soon as that thread executes bytecode again. The kernel,
however, delivers a signal to whichever thread takes it first. If that is another thread (one that starts a thread or
a process at that moment), the system call in which the main thread waits for a lock or for a child is not
interrupted, and the handler is not called until that call returns, which may be never. The interpreter's C handler
runs on every thread, though, and writes the signal's number to the descriptor of `signal.set_wakeup_fd`, from which
`SignalThread` reads it.
"""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Sequence
from types import FrameType, TracebackType
from typing import Any

TERMINATION = (signal.SIGTERM, signal.SIGINT)


class SignalThread:
    """A context manager in which the signals `numbers` do not end the process. Enter it in the main thread.

    From `start` on, the thread calls `handle` for each signal in order, including those that arrived before.
    """

    def __init__(self, numbers: Sequence[int] = TERMINATION) -> None:
        self._numbers = tuple(numbers)
        self._thread: threading.Thread | None = None
        self._handlers: dict[int, Any] = {}
        self._wakeup_fd = -1

    def __enter__(self) -> SignalThread:
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._wakeup_fd = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        for number in self._numbers:
            self._handlers[number] = signal.signal(number, _do_nothing)
        return self

    def start(self, handle: Callable[[int], object]) -> None:
        self._thread = threading.Thread(target=self._read, args=[handle], name="signals", daemon=True)
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_fd)
        self._writer.close()
        if self._thread is not None:
            self._thread.join()
        self._reader.close()

    def _read(self, handle: Callable[[int], object]) -> None:
        while numbers := self._reader.recv(64):
            for number in numbers:
                if number in self._numbers:  # the interpreter writes every signal that has a handler in Python
                    handle(number)


def _do_nothing(signum: int, frame: FrameType | None) -> None:
    """Exists because the interpreter installs its handler in C only for a signal that has a handler in Python."""
