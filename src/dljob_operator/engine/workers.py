"""The threads of a controller that take jobs from its queues, and how they end."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from dljob_operator import logs
from dljob_operator.engine.cache.informer_set import InformerSet
from dljob_operator.failed_check import FailedCheck

_LOG = logging.getLogger(__name__)


RETRY_DELAY = 1.0
"""Seconds after which a thread whose queue raised an error asks it again."""


class Closable(Protocol):
    """The part of RunnerClient that ends all runs."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Work:
    """What the threads of one queue do."""

    take: Callable[[], list[str] | None]
    """Waits for keys; None ends the thread."""
    handle: Callable[[list[str]], None]
    abandon: Callable[[str], object]
    """Returns a key to the queue after `handle` has raised an error."""
    close: Callable[[], None]
    """Makes `take` return None in all threads."""
    threads: int = 1


class Workers:
    """The threads of several queues, which work once the cache of `informers` is filled."""

    def __init__(self, works: Sequence[Work], informers: InformerSet, runner: Closable) -> None:
        self._works = works
        self._informers = informers
        self._runner = runner
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()

    def start(self) -> None:
        """Start the informers and the threads."""
        self._informers.start()
        for work in self._works:
            for _ in range(work.threads):
                name = f"worker {len(self._threads)}"
                thread = threading.Thread(target=self._run, args=[work], name=name, daemon=True)
                self._threads.append(thread)
                thread.start()

    def stop(self, grace: float) -> None:
        """Start no more work, wait `grace` seconds for runs in progress, kill the others, and end all threads."""
        self._stopping.set()
        for work in self._works:
            work.close()
        self._informers.begin_stop()  # the threads that wait for the first lists have started no run before
        deadline = time.monotonic() + grace
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if any(thread.is_alive() for thread in self._threads):
            _LOG.warning("ending runs that did not end in time", extra=logs.fields(grace_seconds=grace))
        self._runner.close()
        self._informers.stop()
        for thread in self._threads:
            thread.join()
        self._informers.join()

    def problem(self) -> str:
        """Why no work is done any more, "" if some is."""
        if self._stopping.is_set():
            return ""
        ended = [thread.name for thread in self._threads if not thread.is_alive()]
        return FailedCheck("a worker has ended", f"the thread {ended[0]} has ended") if ended else ""

    def _run(self, work: Work) -> None:
        self._informers.wait_filled()
        while True:
            try:
                keys = work.take()
            except Exception:
                # an error of the queue itself: without this thread jobs would wait for ever, unnoticed
                _LOG.exception("the queue failed with an internal error")
                if self._stopping.wait(RETRY_DELAY):
                    return
                continue
            if keys is None:
                return
            self._handle(work, keys)

    def _handle(self, work: Work, keys: list[str]) -> None:
        try:
            work.handle(keys)
        except Exception:
            _LOG.exception("reconcile failed with an internal error")
            for key in keys:
                try:
                    work.abandon(key)
                except Exception:
                    _LOG.exception("a job could not be returned to the queue", extra=logs.fields(uid=key))
