"""Records when a peer's objects appear, with watches of the harness, in the same way for every peer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from devtools.lab.bench.workloads import JOB_LABEL, collection
from devtools.testbed.client import METADATA_ONLY, Client
from devtools.testbed.ground import PODS
from devtools.testbed.watching import Watching

_GATHER = 0.01
"""Interval in seconds at which a wait checks its condition: checking after each of thousands of events would take CPU
time from the measured peer. The times themselves are recorded when the events arrive."""


@dataclass
class Seen:
    """The times of one job's events, on the monotonic clock."""

    accepted: float | None = None
    appeared: float | None = None
    """The job's own first event, which may precede the response to its POST."""
    pods: list[float] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    running: float | None = None
    finished: float | None = None


def conditions(status: dict[str, Any]) -> set[str]:
    """The types of the conditions that are True."""
    return {c["type"] for c in status.get("conditions") or () if c.get("status") == "True"}


class Observer:
    """Watches the pods and the jobs of one namespace, from before the first one is created. A context manager."""

    def __init__(self, client: Client, namespace: str, kinds: Collection[str] = ("MXJob",)) -> None:
        self._lock = threading.RLock()
        self._news = threading.Event()
        self._jobs: dict[str, Seen] = {}
        pods = Watching(client, PODS.format(namespace), self._pod, accept=METADATA_ONLY, only="ADDED")
        self._watches = [pods, *(Watching(client, collection(kind, namespace), self._job) for kind in kinds)]

    def __enter__(self) -> Observer:
        for watch in self._watches:
            watch.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        for watch in self._watches:
            watch.__exit__()

    def accepted(self, name: str, moment: float) -> None:
        with self._lock:
            self._of(name).accepted = moment

    def seen(self, name: str) -> Seen:
        with self._lock:
            return self._of(name)

    def made(self, names: Collection[str]) -> int:
        """How many pods of these jobs have appeared."""
        with self._lock:
            return sum(len(self._of(name).pods) for name in names)

    def wait(self, wanted: Callable[[], bool], timeout: float) -> bool:
        """Whether ``wanted`` became true in time; it is checked soon after an event."""
        deadline = time.monotonic() + timeout
        while True:
            self._news.clear()
            with self._lock:
                if wanted():
                    return True
            if lost := [watch for watch in self._watches if watch.failure or watch.expired]:
                raise ConnectionError("a watch of the harness failed") from lost[0].failure
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            if self._news.wait(min(left, 1.0)):
                time.sleep(_GATHER)

    def _of(self, name: str) -> Seen:
        return self._jobs.setdefault(name, Seen())

    def _pod(self, event: str, pod: dict[str, Any], now: float) -> None:
        metadata = pod["metadata"]
        job = (metadata.get("labels") or {}).get(JOB_LABEL)
        if job is None:
            return
        with self._lock:
            seen = self._of(job)
            if metadata["name"] in seen.names:
                return
            seen.pods.append(now)
            seen.names.add(metadata["name"])
            self._news.set()

    def _job(self, event: str, resource: dict[str, Any], now: float) -> None:
        holds = conditions(resource.get("status") or {})
        with self._lock:
            seen = self._of(resource["metadata"]["name"])
            if seen.appeared is None:
                seen.appeared = now
            if "Running" in holds and seen.running is None:
                seen.running = now
            if "Succeeded" in holds and seen.finished is None:
                seen.finished = now
            self._news.set()
