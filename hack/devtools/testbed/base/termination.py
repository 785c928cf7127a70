"""An orderly end of this process by a signal. Apart from `process`, since it stands on the operator's code."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import stat
import sys
import threading
import time
from collections.abc import Iterator

from dljob_operator.signals import TERMINATION, SignalThread

RELAY = signal.SIGUSR1
"""Interrupts the main thread. It is none of the signals that `SignalThread` reads, otherwise it would read it again."""
REPEAT = 0.1
"""Seconds after which it is sent again: one that comes just before a system call does not interrupt that call."""


def ending_signals() -> tuple[signal.Signals, ...]:
    """SIGTERM, SIGINT, and SIGHUP, that of a terminal that closes, unless nohup has it ignored."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return TERMINATION
    return (*TERMINATION, signal.SIGHUP)


def leave_terminal(number: int) -> None:
    """After SIGHUP, write to /dev/null: to a terminal that has closed no write succeeds, also none of a clean-up."""
    if number != signal.SIGHUP:
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        if stat.S_ISCHR(os.fstat(stream).st_mode):  # isatty is False of a terminal that has closed
            os.dup2(nowhere, stream)
    os.close(nowhere)


@contextlib.contextmanager
def ends_main_thread() -> Iterator[None]:
    """In the main thread, raise KeyboardInterrupt on SIGINT, and SystemExit on SIGTERM (143) and SIGHUP (129).

    Whichever thread the kernel delivers them to. A handler alone is not called while the main thread is in a system
    call that another thread's signal does not interrupt (see dljob_operator.signals). `SignalThread` reads the signal,
    and interrupts the main thread with another.
    """
    main = threading.get_ident()
    pending: queue.SimpleQueue[int] = queue.SimpleQueue()  # reentrant: the handler uses it

    def relay(number: int) -> None:
        leave_terminal(number)
        pending.put(number)
        while not pending.empty():
            signal.pthread_kill(main, RELAY)
            time.sleep(REPEAT)

    def raise_pending(*_: object) -> None:
        try:
            number = pending.get_nowait()
        except queue.Empty:
            return
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        sys.exit(128 + number)

    previous = signal.signal(RELAY, raise_pending)
    try:
        with SignalThread(ending_signals()) as signals:
            signals.start(relay)
            yield
    finally:
        signal.signal(RELAY, previous)
