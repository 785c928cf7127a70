"""A healthy job from time to time beside the others, and how long it takes."""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import dataclass
from typing import Any

from devtools.lab.bench.measures import percentile
from devtools.lab.bench.observer import Observer
from devtools.lab.bench.workloads import JOB_LABEL, collection, job
from devtools.testbed.client import Client
from devtools.testbed.ground import PODS as PATH
from devtools.testbed.watching import Watching

PODS = 3
_TIMEOUT = 60.0


@dataclass(frozen=True)
class Times:
    """Seconds from the first event of a job until its first pod, its last pod and its status Running.

    ``request`` is the time of the POST that created it: how busy the API server was. ``report`` is the time from the
    last pod's phase Running, which the simulated kubelet writes, until the status.
    """

    request: float
    first_pod: float
    all_pods: float
    running: float
    report: float


@dataclass(frozen=True)
class Summary:
    """Median and maximum of several jobs' times."""

    jobs: int
    median: Times
    longest: Times


def summary(times: list[Times]) -> Summary:
    """Raises ValueError for no times."""

    def each(share: float) -> Times:
        return Times(*(percentile([getattr(one, name) for one in times], share) for name in Times.__annotations__))

    return Summary(len(times), each(0.5), each(1.0))


def delays(times: Times, undisturbed: Summary) -> Times:
    """How much longer a job took than the median of the undisturbed ones. Seconds, negative for one that was faster."""
    names = Times.__annotations__
    return Times(*(getattr(times, name) - getattr(undisturbed.median, name) for name in names))


class Beside:
    """Creates healthy jobs in ``namespace``, one after the other. A context manager."""

    def __init__(self, client: Client, namespace: str, interval: float = 2.0) -> None:
        self._client = client
        self._namespace = namespace
        self._interval = interval
        self._numbers = itertools.count()
        self._observer = Observer(client, namespace)
        self._pods = Watching(client, PATH.format(namespace), self._pod)
        self._up: dict[str, dict[str, float]] = {}
        """When each pod of a job became Running."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._repeat, name="beside", daemon=True)
        self.times: list[Times] = []
        self.lost: list[str] = []
        """Jobs that did not run within a minute, and errors."""

    def __enter__(self) -> Beside:
        self._observer.__enter__()
        self._pods.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._pods.__exit__()
        self._observer.__exit__()

    def start(self) -> None:
        """One job each ``interval``, on a thread of its own, until ``stop``."""
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(2 * _TIMEOUT)

    def undisturbed(self, count: int) -> Summary:
        """Create ``count`` jobs now, and one before that is not measured, and return their times."""
        self._one()
        times = [one for one in (self._one() for _ in range(count)) if one is not None]
        if not times:
            raise TimeoutError(f"no healthy job ran: {'; '.join(self.lost)}")
        return summary(times)

    def _repeat(self) -> None:
        while not self._stopping.wait(self._interval):
            try:
                times = self._one()
            except Exception as error:
                self.lost.append(f"{type(error).__name__}: {error}")
                continue
            if times is not None:
                self.times.append(times)

    def _pod(self, event: str, found: dict[str, Any], now: float) -> None:
        job = (found["metadata"].get("labels") or {}).get(JOB_LABEL)
        if job is not None and event != "DELETED" and found["status"].get("phase") == "Running":
            self._up.setdefault(job, {}).setdefault(found["metadata"]["name"], now)

    def _one(self) -> Times | None:
        name = f"healthy-{next(self._numbers)}"
        began = time.monotonic()
        self._client.request("POST", collection("MXJob", self._namespace), job(name, PODS))
        request = time.monotonic() - began
        seen = self._observer.seen(name)
        up = self._up.setdefault(name, {})
        came = self._observer.wait(
            lambda: len(seen.pods) >= PODS and seen.running is not None and len(up) >= PODS, _TIMEOUT
        )
        try:
            if not came or seen.appeared is None or seen.running is None:
                self.lost.append(f"{name} had {len(seen.pods)} pods and no status Running after {_TIMEOUT:.0f} s")
                return None
            return Times(
                request,
                max(0.0, min(seen.pods) - seen.appeared),
                max(0.0, max(seen.pods) - seen.appeared),
                max(0.0, seen.running - seen.appeared),
                max(0.0, seen.running - max(up.values())),
            )
        finally:
            self._up.pop(name, None)
            self._remove(name)

    def _remove(self, name: str) -> None:
        core = f"/api/v1/namespaces/{self._namespace}"
        self._client.raw(
            "DELETE", f"{collection('MXJob', self._namespace)}/{name}", {"propagationPolicy": "Background"}
        )
        self._client.raw("DELETE", f"{core}/pods", {"gracePeriodSeconds": 0})
