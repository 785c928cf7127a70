"""What a job has used so far: the account in its status, which an operator with ``--usage on`` keeps. Pure.

The status has the amounts at the time of its last change, and what the job has held since; both together give those of
any later time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dljob.errors import Refused
from dljob.times import time_of

PHASES = ("queued", "starting", "running", "restarting", "suspended")
CPU, MEMORY = "cpu", "memory"
CURRENCY = "currency"
"""The key of the prices' ConfigMap that is no price."""
_HOUR = 3600.0
_MOST = 1e24
"""A number above is none that a job can have."""


@dataclass(frozen=True, slots=True)
class Interruption:
    """All times at which one cause kept a job from running with all its replicas; its starts are one cause."""

    cause: str
    """Startup, Disruption, Failure, Stall, Deletion or Other."""
    count: int
    seconds: float
    hours: Mapping[str, float] = field(default_factory=dict)
    """By resource, of what the job held meanwhile."""


@dataclass(frozen=True, slots=True)
class Account:
    """The account of a job, or of several."""

    hours: Mapping[str, float] = field(default_factory=dict)
    """By resource: core hours of cpu, GiB hours of memory, device hours of the others."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """By phase, one of PHASES."""
    interruptions: tuple[Interruption, ...] = ()
    """Those that are over."""
    jobs: int = 1

    def of(self, wanted: Callable[[str], bool]) -> float:
        """The hours of the resources of these names."""
        return sum(hours for name, hours in self.hours.items() if wanted(name))

    def lost(self, wanted: Callable[[str], bool]) -> float:
        """The hours of these resources that were held while not all replicas ran."""
        return sum(hours for one in self.interruptions for name, hours in one.hours.items() if wanted(name))

    def goodput(self, is_gpu: Callable[[str], bool]) -> float | None:
        """The part of the accelerators' hours, or of the cores' without any, in which all replicas ran; ``None`` where
        nothing was held."""
        for wanted in (is_gpu, lambda name: name == CPU):
            if total := self.of(wanted):
                return max(0.0, 1 - self.lost(wanted) / total)
        return None

    def cost(self, prices: Prices) -> float:
        """What the hours cost."""
        return sum(hours * prices.per_hour.get(name, 0.0) for name, hours in self.hours.items())

    def __add__(self, other: Account) -> Account:
        causes: dict[str, Interruption] = {}
        for one in (*self.interruptions, *other.interruptions):
            known = causes.get(one.cause, Interruption(one.cause, 0, 0.0))
            causes[one.cause] = Interruption(
                one.cause, known.count + one.count, known.seconds + one.seconds, _sum(known.hours, one.hours)
            )
        return Account(
            _sum(self.hours, other.hours),
            _sum(self.seconds, other.seconds),
            tuple(causes.values()),
            self.jobs + other.jobs,
        )


@dataclass(frozen=True, slots=True)
class Prices:
    """What an hour of each resource costs."""

    per_hour: Mapping[str, float]
    currency: str = ""


def account_of(status: Any, now: datetime) -> Account | None:
    """The account in a job's status, as of ``now``; ``None`` where no operator keeps one."""
    given = _map(_map(status).get("usage"))
    as_of = time_of(given.get("asOf"))
    if as_of is None:
        return None
    since = max(0.0, (now - as_of).total_seconds())
    amounts = _numbers(given.get("resourceSeconds"))
    used = _sum(amounts, {name: held * since for name, held in _numbers(given.get("held")).items()})
    seconds = {phase: value for phase, value in _numbers(given.get("seconds")).items() if phase in PHASES}
    phase = str(given.get("phase")).lower()
    if phase in PHASES:
        seconds[phase] = seconds.get(phase, 0.0) + since
    found = given.get("interruptions")
    return Account(
        _hours(used),
        seconds,
        tuple(
            Interruption(
                str(one.get("cause")),
                round(_number(one.get("count"))),
                _number(one.get("seconds")),
                _hours(_numbers(one.get("resourceSeconds"))),
            )
            for one in map(_map, found if isinstance(found, list) else ())
        ),
    )


def prices(config_map: Mapping[str, Any]) -> Prices:
    """The prices in the data of a ConfigMap: by resource what an hour of a core, of a GiB or of a device costs, and
    ``currency``. Raises Refused for what is no price."""
    meta = _map(config_map.get("metadata"))
    per_hour: dict[str, float] = {}
    data = {str(name): str(text) for name, text in _map(config_map.get("data")).items()}
    currency = data.pop(CURRENCY, "")
    for name, text in data.items():
        try:
            price = float(text)
        except ValueError:
            price = -1.0
        if not 0 <= price < _MOST:
            raise Refused(
                f"The ConfigMap {meta.get('namespace')}/{meta.get('name')} has {text[:40]!r} as the price of {name}: "
                "write a number such as 2.5"
            )
        per_hour[name] = price
    return Prices(per_hour, currency)


def _hours(amounts: Mapping[str, float]) -> dict[str, float]:
    return {name: amount / _HOUR for name, amount in amounts.items()}


def _sum(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
    return {name: first.get(name, 0.0) + second.get(name, 0.0) for name in {**first, **second}}


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _numbers(value: Any) -> dict[str, float]:
    return {str(name): number for name, one in _map(value).items() if (number := _number(one))}


def _number(value: Any) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < _MOST else 0.0
