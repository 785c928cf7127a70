"""The state of each job in flight, from the events of a watch, and what the harness has to do next.

It is safe to use from several threads.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from devtools.lab.soak.mix import Life, SoakJob

RESUME, DELETE = "resume", "delete"
ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True)
class Done:
    """A job that is gone. Seconds from its creation; None for what never came."""

    order: int
    """How many jobs were done before."""
    life: Life
    first_pod: float | None
    ended: float | None


@dataclass
class _Flight:
    job: SoakJob
    created: float
    first_pod: float | None = None
    ended: float | None = None
    state: str = ""
    resumed: bool = False
    deleted: bool = False
    apart: bool = False


@dataclass
class Progress:
    """``wrong`` are the jobs that ended otherwise than expected. ``apart`` are those that were begun so, while the
    operator was not sampled; they are not in ``done``."""

    done: list[Done] = field(default_factory=list)
    apart: list[Done] = field(default_factory=list)
    lives: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    _flights: dict[str, _Flight] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def begin(self, job: SoakJob, now: float, apart: bool = False) -> None:
        """Before the job is created. ``now`` is on the monotonic clock, as all times here."""
        with self._changed:
            self._flights[job.name] = _Flight(job, now, apart=apart)

    def wait_below(self, limit: int, timeout: float) -> bool:
        """Wait until fewer than ``limit`` jobs are in flight; False after ``timeout`` seconds without that."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._flights) < limit, timeout)

    @property
    def in_flight(self) -> list[str]:
        with self._changed:
            return list(self._flights)

    def job_of(self, name: str) -> SoakJob | None:
        with self._changed:
            flight = self._flights.get(name)
            return flight.job if flight else None

    def pod_appeared(self, name: str, now: float) -> None:
        """The job ``name`` has a pod."""
        with self._changed:
            flight = self._flights.get(name)
            if flight is not None and flight.first_pod is None:
                flight.first_pod = now

    def job_changed(self, name: str, status: Mapping[str, Any], now: float) -> str:
        """Take over a job's status; returns what to do with the job now: RESUME, DELETE or ""."""
        with self._changed:
            flight = self._flights.get(name)
            if flight is None:
                return ""
            self._read(flight, status, now)
            if flight.job.life is Life.SUSPEND and not flight.resumed and _is_suspended(status):
                flight.resumed = True
                flight.created = now  # its pods are due from here on
                return RESUME
            over = flight.state and not flight.job.expires
            running = flight.job.life is Life.DELETE and status.get("phase") == "Running"
            if (over or running) and not flight.deleted:
                flight.deleted = True
                return DELETE
            return ""

    def job_gone(self, name: str, status: Mapping[str, Any], now: float) -> bool:
        """The job was deleted; whether it was in flight."""
        with self._changed:
            flight = self._flights.pop(name, None)
            if flight is None:
                return False
            self._read(flight, status, now)
            job = flight.job
            if flight.state != job.expected:
                self.wrong.append(f"{name} ({job.kind.title}, {job.life.value}): {flight.state or 'no end'}")
            done = self.apart if flight.apart else self.done
            if not flight.apart:
                self.lives[job.life.value] += 1
            done.append(
                Done(
                    len(done),
                    job.life,
                    None if flight.first_pod is None else flight.first_pod - flight.created,
                    None if flight.ended is None else flight.ended - flight.created,
                )
            )
            self._changed.notify_all()
            return True

    @staticmethod
    def _read(flight: _Flight, status: Mapping[str, Any], now: float) -> None:
        state = status.get("state")
        if state in ENDED and not flight.state:
            flight.state, flight.ended = str(state), now


def _is_suspended(status: Mapping[str, Any]) -> bool:
    conditions = status.get("conditions") or ()
    return any(one.get("type") == "Suspended" and one.get("status") == "True" for one in conditions)
