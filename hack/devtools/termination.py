"""Lets SIGTERM and SIGINT end the main thread's work, whichever thread the kernel delivers them to.

A handler alone is not called while the main thread is in a system call that another thread's signal does not
interrupt (see dljob_operator.signals). `SignalThread` reads the signal, and interrupts the main thread with another.
"""

from __future__ import annotations

import contextlib
import queue
import signal
import sys
import threading
import time
from collections.abc import Iterator

from dljob_operator.signals import TERMINATION, SignalThread

RELAY = signal.SIGUSR1
"""Interrupts the main thread. It is none of the signals that `SignalThread` reads, otherwise it would read it again."""
REPEAT = 0.1
"""Seconds after which it is sent again: one that comes just before a system call does not interrupt that call."""


@contextlib.contextmanager
def ends_main_thread() -> Iterator[None]:
    """In the main thread, raise KeyboardInterrupt on SIGINT, and SystemExit(143) on SIGTERM, in the body."""
    main = threading.get_ident()
    pending: queue.SimpleQueue[int] = queue.SimpleQueue()  # reentrant: the handler uses it

    def relay(number: int) -> None:
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
        with SignalThread(TERMINATION) as signals:
            signals.start(relay)
            yield
    finally:
        signal.signal(RELAY, previous)
