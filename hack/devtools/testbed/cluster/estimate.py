"""Estimates of the remaining time, from earlier runs on this machine, else from built-in figures. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

DEFAULTS: Mapping[str, float] = {
    # seconds on a machine with two cores
    "tools": 20,
    "kubernetes": 570,
    "containerd": 75,
    "etcd": 60,
    "coredns": 170,
    "kwok": 160,
    "kubectl": 240,
    "engine": 10,
    "engine-start": 3,
    "pull": 60,
    "rootfs": 35,
    "assemble": 30,
    "load": 12,
    "registry": 3,
    "create": 25,
    "ready": 8,
}
UNKNOWN = 10.0
"""Seconds assumed for a step without history and without a built-in figure."""
KEEP = 5
"""Number of earlier runs kept for each step."""


@dataclass(frozen=True)
class Progress:
    """Progress of the running step: ``done`` of ``total`` units; ``total`` is 0 if unknown."""

    done: int = 0
    total: int = 0
    unit: str = ""

    @property
    def fraction(self) -> float:
        return min(1.0, self.done / self.total) if self.total else 0.0


def expected(step: str, history: Mapping[str, Sequence[float]]) -> float:
    """Expected seconds of a step: the median of its earlier runs, else the built-in figure."""
    past = sorted(history.get(step, ()))
    return past[len(past) // 2] if past else DEFAULTS.get(step, UNKNOWN)


def remaining(
    step: str,
    elapsed: float,
    later: Sequence[str],
    history: Mapping[str, Sequence[float]],
    progress: Progress,
) -> float:
    """Seconds left for the running step and all later ones.

    Once a tenth of a countable step is done, the estimate combines its current pace with its history. The pace gets
    more weight the more is done and the closer the step is to its expected time. This corrects the estimate for a
    build on a busy machine, and for one that finds most of its packages in the cache.
    """
    guess = expected(step, history)
    left = max(0.0, guess - elapsed)
    fraction = progress.fraction
    if fraction >= 0.1:
        own = elapsed * (1 - fraction) / fraction
        weight = max(fraction, min(1.0, elapsed / guess))
        left = weight * own + (1 - weight) * left
    return left + sum(expected(name, history) for name in later)


def record(history: Mapping[str, Sequence[float]], step: str, seconds: float) -> dict[str, list[float]]:
    """The history with one more run of the step, and without its oldest run."""
    updated = {name: list(values) for name, values in history.items()}
    updated[step] = [*updated.get(step, []), round(seconds, 1)][-KEEP:]
    return updated


def clock(seconds: float) -> str:
    """``42 s``, ``3 min 05 s``."""
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02d} s"


def about(seconds: float) -> str:
    """A rounded duration: ``less than 5 s``, ``about 40 s``, ``about 9 min``."""
    if seconds < 5:
        return "less than 5 s"
    if seconds < 90:
        return f"about {5 * round(seconds / 5)} s"
    return f"about {round(seconds / 60)} min"
