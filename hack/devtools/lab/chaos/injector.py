"""Which request or watch event a fault hits: the faults that wait in a proxy, and what they match. Does no I/O."""

from __future__ import annotations

import threading
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field

from devtools.lab.chaos.faults import BY_NAME, EVENT, LEASES, UPDATES, WRITES, Fault


@dataclass(frozen=True)
class Call:
    """One request as the proxy receives it."""

    method: str
    target: str
    """Path and query."""

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def is_watch(self) -> bool:
        query = urllib.parse.parse_qs(self.target.partition("?")[2])
        return query.get("watch", [""])[0] in ("true", "1")


def matches(fault: Fault, call: Call) -> bool:
    """Whether the request ``call`` can have this fault.

    Requests for the Lease have faults of their own: there are two a second, and they would get most of the others.
    """
    kind = BY_NAME[fault.kind]
    if kind.group == EVENT or call.is_watch or (kind.only == LEASES) != ("/leases" in call.path):
        return False
    if kind.only in (UPDATES, LEASES):
        return call.method in ("PUT", "PATCH")
    return call.method != "GET" if kind.only == WRITES else True


@dataclass
class _Armed:
    fault: Fault
    skip: int


@dataclass
class Injector:
    """The faults that wait in the proxy of one operator. Thread-safe.

    ``injected`` is called once for each fault that is handed out.
    """

    injected: Callable[[Fault], None] = lambda fault: None
    _requests: list[_Armed] = field(default_factory=list)
    _events: list[_Armed] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def arm(self, fault: Fault) -> None:
        """Let the next matching request or event have this fault, after those that it skips."""
        with self._lock:
            waiting = self._events if BY_NAME[fault.kind].group == EVENT else self._requests
            waiting.append(_Armed(fault, fault.skip))

    def disarm(self) -> list[Fault]:
        """Remove and return the faults that nothing has matched."""
        with self._lock:
            left = [armed.fault for armed in (*self._requests, *self._events)]
            self._requests.clear()
            self._events.clear()
            return left

    @property
    def waiting(self) -> bool:
        """Whether some fault has not been matched yet."""
        with self._lock:
            return bool(self._requests or self._events)

    def for_request(self, call: Call) -> Fault | None:
        """The fault of this request, None for none."""
        return self._next(self._requests, lambda fault: matches(fault, call))

    def for_event(self) -> Fault | None:
        """The fault of the next event of a watch, None for none."""
        return self._next(self._events, lambda fault: True)

    def _next(self, waiting: list[_Armed], wanted: Callable[[Fault], bool]) -> Fault | None:
        with self._lock:
            armed = next((one for one in waiting if wanted(one.fault)), None)
            if armed is None:
                return None
            if armed.skip:
                armed.skip -= 1
                return None
            waiting.remove(armed)
        self.injected(armed.fault)
        return armed.fault
