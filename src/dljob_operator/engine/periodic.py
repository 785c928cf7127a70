"""A thread that does something at intervals."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

_LOG = logging.getLogger(__name__)


class Periodic:
    """Calls `task` every `interval` seconds on a thread `name`, first after one of them, until it is stopped.

    An exception of the task is logged, and the next call goes on.
    """

    def __init__(self, name: str, task: Callable[[], object], interval: float) -> None:
        self._name = name
        self._task = task
        self._interval = interval
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def is_stopping(self) -> bool:
        """Whether a task that runs should return soon."""
        return self._stopping.is_set()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Request the end of the thread and return immediately."""
        self._stopping.set()

    def join(self, timeout: float | None = None) -> bool:
        """Wait `timeout` seconds for the end of the thread, or without a limit; return whether it has ended."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.wait(self._interval):
            try:
                self._task()
            except Exception:
                _LOG.exception("%s: internal error", self._name)
