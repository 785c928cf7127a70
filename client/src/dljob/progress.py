"""How far a job's training is, as its program has reported: the progress in its status. Pure.

The status has the shape of that of a TrainJob of Kubeflow Trainer v2, and a tenant may have written anything there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from dljob.times import time_of

MOST_METRICS = 256
_LONGEST = 128
"""Characters of a name or a value; further ones are cut off."""
_MOST_SECONDS = 2**31
"""A number of seconds from here on is none that a program can mean."""


class Metric(NamedTuple):
    """One metric, in the words of the program."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Slowest:
    """The rank whose steps take longest."""

    replica: str
    """Such as ``worker-3``."""
    pod: str = ""
    node: str = ""
    step_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Ranks:
    """What all ranks report together."""

    reporting: int | None = None
    """How many do."""
    median_step_seconds: float | None = None
    slowest: Slowest | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """What the program of a job has reported last; ``None`` stands for what it has left out."""

    percent: int | None = None
    remaining_seconds: int | None = None
    """As of ``updated``."""
    updated: datetime | None = None
    metrics: tuple[Metric, ...] = ()
    ranks: Ranks | None = None
    left: float | None = None
    """Seconds from now on, at least 0; ``None`` of a job that does not go on."""
    age: float | None = None
    """Seconds since ``updated``."""

    def at(self, now: datetime) -> Progress:
        """The same report, seen at ``now``."""
        if self.updated is None:
            return self
        age = max(0.0, (now - self.updated).total_seconds())
        left = None if self.left is None else max(0.0, (self.remaining_seconds or 0) - age)
        return replace(self, left=left, age=age)


def is_reported(status: Any) -> bool:
    """Whether the program reports its progress."""
    found = _map(status).get("trainerStatus")
    return isinstance(found, Mapping) and bool(found)


def progress_of(status: Any, now: datetime, *, goes_on: bool = True) -> Progress | None:
    """The progress in a job's status, as of ``now``; ``None`` where the job reports none.

    Without ``goes_on`` the job is at rest, and no time is left.
    """
    given = _map(_map(status).get("trainerStatus"))
    remaining = _whole(given.get("estimatedRemainingSeconds"), _MOST_SECONDS)
    found = Progress(
        percent=_whole(given.get("progressPercentage"), 101),
        remaining_seconds=remaining,
        updated=time_of(given.get("lastUpdatedTime")),
        metrics=_metrics(given.get("metrics")),
        ranks=_ranks(_map(_map(status).get("rankStatus"))),
        left=None if remaining is None or not goes_on else float(remaining),
    )
    return None if found == Progress() else found.at(now)


def _metrics(given: Any) -> tuple[Metric, ...]:
    entries = [_map(one) for one in given[:MOST_METRICS]] if isinstance(given, list) else []
    found = (Metric(_text(one.get("name")), _text(one.get("value"))) for one in entries)
    return tuple(one for one in found if one.name and one.value)


def _ranks(given: Mapping[str, Any]) -> Ranks | None:
    slowest = _map(given.get("slowest"))
    name = _text(slowest.get("replica")) or _text(slowest.get("pod"))
    found = Ranks(
        reporting=_whole(given.get("reporting"), _MOST_SECONDS),
        median_step_seconds=_seconds(given.get("medianStepSeconds")),
        slowest=Slowest(
            name, _text(slowest.get("pod")), _text(slowest.get("node")), _seconds(slowest.get("stepSeconds"))
        )
        if name
        else None,
    )
    return None if found == Ranks() else found


# --- plain values


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    return value[:_LONGEST] if isinstance(value, str) else ""


def _whole(value: Any, end: int) -> int | None:
    """The number, if it is a whole one from 0 up to ``end``, which is excluded."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < end else None


def _seconds(value: Any) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < _MOST_SECONDS else None
