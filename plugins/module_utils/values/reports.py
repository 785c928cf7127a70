"""When the programs of a job have reported their progress, as an engine with an endpoint for them knows it.

Ages are in seconds: an engine measures them by a clock that is never set.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LastReport:
    """The last report of a replica."""

    replica: str
    """As ``worker-0``."""
    age: float
    text: str
    """What it said, in short; "" for a report without a figure."""


@dataclass(frozen=True, slots=True)
class Reports:
    """The reports of a job's programs."""

    listening: float
    """For how long none of them can have been lost."""
    age: float | None = None
    """Of the last one of all replicas; ``None`` where the engine has got none."""
    oldest: tuple[LastReport, ...] = ()
    """The last reports of the replicas that have been silent for longest, these first."""
    replicas: int = 0
    """How many have reported."""
