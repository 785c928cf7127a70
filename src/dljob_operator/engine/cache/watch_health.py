"""Whether an informer still follows the API server: what the probes need to know of one watch.

An error that a new process would get too must not fail the liveness probe. Where the API server does not answer, a
restart loses the cache and adds lists to the load of a server that is coming back; client-go's reflectors try again for
ever too, and no check of controller-runtime restarts a manager for that. Only the readiness probe fails then. These
remain for the liveness probe: a thread that has stopped, a watch that is open and silent, and rejected credentials,
which a new process reads anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from dljob_operator.failed_check import FailedCheck

LIST_AGAIN_AFTER = 300.0
"""Seconds without an event, a bookmark or a list, after which an informer lists again. Bookmarks arrive about once a
minute, and the API server ends a watch after at most this time."""
STALE_AFTER = 600.0
"""Seconds after which a watch that neither receives anything nor fails counts as stuck. Each request has a timeout."""
REJECTED_AFTER = 600.0
"""Seconds for which the credentials may be rejected until a restart is tried."""
UNREADY_AFTER = 60.0
"""Seconds for which lists and watches may fail until the cache counts as out of date. A restart of the API server takes
less."""


class WatchHealth:
    """What happened to the watch of `what`. One thread reports, others read. `clock` returns monotonic seconds."""

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._clock = clock
        self._open = False
        self._received_at = clock()
        self._active_at = clock()
        self._error = ""
        self._failing_since: float | None = None
        self._rejected_since: float | None = None

    @property
    def silent_for(self) -> float:
        """Seconds without an event, a bookmark or a page of a list, while every watch could be opened."""
        return self._clock() - self._received_at if self._open else 0.0

    def received(self) -> None:
        """An event, a bookmark or a page of a list has arrived."""
        self._received_at = self._active_at = self._clock()

    def opened(self) -> None:
        """A watch was opened."""
        self._active_at = self._clock()
        if not self._open:
            self._received_at = self._active_at
        self._open = True
        self._error = ""
        self._failing_since = self._rejected_since = None

    def failed(self, error: str, *, rejected: bool = False) -> None:
        """A list or a watch failed. `rejected`: the API server or this process rejects the credentials of the other."""
        now = self._clock()
        self._open = False
        self._error = error
        self._active_at = now
        self._failing_since = now if self._failing_since is None else self._failing_since
        if not rejected:
            self._rejected_since = None
        elif self._rejected_since is None:
            self._rejected_since = now

    def absent(self) -> None:
        """There is nothing to watch: the kind is not served, or RBAC forbids an optional one."""
        self.opened()
        self._open = False

    def problem(self) -> str:
        """What a restart may mend, "" if nothing."""
        now, silent = self._clock(), self.silent_for
        inactive, rejected = now - self._active_at, _since(self._rejected_since, now)
        if silent > STALE_AFTER:
            details = f"the watch of {self._what} is open but has received nothing for {silent:.0f} s"
            return FailedCheck("a watch receives nothing", details)
        if inactive > STALE_AFTER:
            details = f"the watch of {self._what} has made no attempt for {inactive:.0f} s"
            return FailedCheck("a watch makes no attempt", details)
        if rejected > REJECTED_AFTER:
            details = f"the watch of {self._what} has been rejected for {rejected:.0f} s: {self._error}"
            return FailedCheck("a watch is rejected", details)
        return ""

    def not_ready(self, has_synced: bool) -> str:
        """Why the cache is not up to date, "" if it is. `has_synced` is that of the informer."""
        if not has_synced:
            details = f"the first list of {self._what} is not complete{self._error and f': {self._error}'}"
            return FailedCheck("a first list is not complete", details)
        failing = _since(self._failing_since, self._clock())
        if failing > UNREADY_AFTER:
            details = f"{self._what} could not be watched for {failing:.0f} s: {self._error}"
            return FailedCheck("a watch fails", details)
        return self.problem()


def _since(moment: float | None, now: float) -> float:
    return 0.0 if moment is None else now - moment
