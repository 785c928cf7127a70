"""What may go wrong at a position of a run, and how the end then compares with that of the undisturbed run.

The method is that of Sieve (Sun et al., OSDI 2022): a controller must reach the same end whatever happens in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from support.fake_api_server import failure, no_answer
from unit.perturbation.model import BOTH, JOBS, OWNED, Crash, Perturbation, Position, Scenario, World

WINDOWS = (4,)
EXHAUSTIVE = tuple(range(1, 11))
"""Events that a stale cache lacks, or changes by others that are hidden: in the default suite, and in the long run."""

TIMES = ("startTime", "completionTime")
HIDDEN_CONDITIONS = ("Created", "Running", "Restarting", "Suspended")
"""Conditions that report what lasted for some time: an operator that did not see it does not report it."""


@dataclass(frozen=True)
class CrashAt(Perturbation):
    """The operator ends at a request, before or after the server has carried it out."""

    at: int
    takes_effect: bool

    def before_request(self, world: World, position: Position) -> None:
        if position.number == self.at and not self.takes_effect:
            raise Crash

    def after_request(self, world: World, position: Position) -> None:
        if position.number == self.at and self.takes_effect:
            raise Crash


@dataclass(frozen=True)
class StaleRestart(Perturbation):
    """The operator ends after a position, and the cache of the new one lacks the last events of some kinds."""

    at: int
    back: int
    parts: Sequence[str]
    cache_may_lack_pods: ClassVar[bool] = True

    def after_request(self, world: World, position: Position) -> None:
        if position.number == self.at:
            raise Crash

    def after_change(self, world: World, position: Position) -> None:
        if position.number == self.at:
            self.restart(world)

    def restart(self, world: World) -> None:
        events = world.server.watch_events
        lacking = [n for n, event in enumerate(events) if world.part_of(event) in self.parts][-self.back :]
        seen = lacking[0] if lacking else len(events)
        world.restart({part: seen if part in self.parts else len(events) for part in BOTH})


@dataclass(frozen=True)
class HiddenStates(Perturbation):
    """The operator does not run while others make ``window`` changes; its cache gets the last states then."""

    at: int
    window: int

    def after_request(self, world: World, position: Position) -> None:
        if position.number == self.at:
            world.hidden_for = self.window

    def after_change(self, world: World, position: Position) -> None:
        self.after_request(world, position)


@dataclass(frozen=True)
class NoAnswer(Perturbation):
    """A request gets no response, before or after the server has carried it out; the operator goes on and reports it."""

    at: int
    takes_effect: bool
    reported_as: ClassVar[frozenset[tuple[str, str]]] = frozenset(
        {("Warning", "FailedCreatePod"), ("Warning", "FailedDeletePod")}
    )

    def before_request(self, world: World, position: Position) -> None:
        if position.number == self.at:
            world.fail_next_request(no_answer(), self.takes_effect)


@dataclass(frozen=True)
class Denied(Perturbation):
    """An admission policy denies a write; the operator reports it and tries it again."""

    at: int
    reported_as: ClassVar[frozenset[tuple[str, str]]] = frozenset(
        {("Warning", "FailedCreatePod"), ("Warning", "FailedDeletePod"), ("Warning", "FailedCreateObject")}
    )

    def before_request(self, world: World, position: Position) -> None:
        if position.number == self.at:
            world.fail_next_request(failure(403, "Forbidden", "denied by a policy"), takes_effect=False)


def perturbations(
    kind: type[Perturbation], positions: Sequence[Position], windows: Sequence[int]
) -> Iterator[CrashAt | Denied | NoAnswer | StaleRestart | HiddenStates]:
    """All of one kind, in the order of the positions."""
    for position in positions:
        at = position.number
        if kind in (CrashAt, NoAnswer) and position.by_operator:
            yield from (kind(at, takes_effect) for takes_effect in (False, True))  # type: ignore[call-arg, misc]
        if kind is Denied and position.by_operator and not position.what.startswith("GET"):
            yield Denied(at)
        for window in windows:
            if kind is StaleRestart:
                yield from (StaleRestart(at, window, parts) for parts in (BOTH, (JOBS,), (OWNED,)))
            elif kind is HiddenStates:
                yield HiddenStates(at, window)


@dataclass
class Baseline:
    """The undisturbed run, with the world as it was at the beginning of each step."""

    end: World
    checkpoints: list[World]

    @staticmethod
    def of(scenario: Scenario) -> Baseline:
        world = World(scenario)
        checkpoints = [world.copy()]
        while world.step():
            checkpoints.append(world.copy())
        return Baseline(world.copy().run(), checkpoints)

    @property
    def positions(self) -> Sequence[Position]:
        return self.checkpoints[-1].positions

    def perturbed(self, perturbation: Any) -> World:
        """The end of a run with this perturbation, which goes as the undisturbed one until then."""
        before = [world for world in self.checkpoints if len(world.positions) <= perturbation.at][-1]
        world = before.copy()
        world.perturbation = perturbation
        return world.run()


def difference(baseline: World, world: World, perturbation: Perturbation) -> str:
    """How the ends differ, "" where they do not."""
    exact = isinstance(perturbation, CrashAt)
    expected, actual = _end_of(baseline, exact), _end_of(world, exact)
    found = [_first_difference(key, expected[key], actual[key]) for key in expected if expected[key] != actual[key]]
    strange = set(world.operator_events) - set(baseline.operator_events) - perturbation.reported_as
    if strange:
        found.append(f"additional Events {sorted(strange)}")
    return "; ".join(found)


def _first_difference(name: str, expected: Any, actual: Any) -> str:
    if isinstance(expected, dict) and isinstance(actual, dict):
        keys = sorted({*expected, *actual}, key=str)
        key = next(key for key in keys if expected.get(key) != actual.get(key))
        return _first_difference(f"{name}.{key}", expected.get(key), actual.get(key))
    return f"{name}: {expected!r} expected, {actual!r} found"


def _end_of(world: World, exact: bool) -> Mapping[str, Any]:
    """What the user sees in the end, without times; without the conditions that may be hidden, unless ``exact``."""
    timed = (*TIMES, "conditions", "lastLoss", "recentRestarts", "allRunning")
    status = {key: value for key, value in world.status.items() if key not in timed}
    if "recentRestarts" in world.status and exact:
        status["recentRestarts"] = len(world.status["recentRestarts"].get("times", ()))
    if "lastLoss" in world.status and exact:
        loss = world.status["lastLoss"]
        status["lastLoss"] = {name: loss[name] for name in ("replica", "message", "retryable")}
    conditions = {
        x["type"]: (x["status"], x["reason"])
        for x in world.status.get("conditions", ())
        if exact or x["type"] not in HIDDEN_CONDITIONS
    }
    pods = {
        name: (pod["status"]["phase"], pod["metadata"]["labels"]["dljob.operator/attempt"])
        for name, pod in world.pods.items()
    }
    others = {
        plural: sorted(objects)
        for (_, plural), objects in world.server.objects.items()
        if objects and plural not in ("pods", "events", world.scenario.jobs[1])
    }
    return {"job": world.job is not None, "status": status, "conditions": conditions, "pods": pods, "others": others}
