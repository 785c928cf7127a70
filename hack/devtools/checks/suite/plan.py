"""The steps of the lanes, for the selected parts. Pure.

There are several lanes because most of the suite waits: one creates the cluster and runs the tests that wait for pods,
one has the linters and the scenarios of molecule, and one has what shares nothing with the others: the steps that start
clusters of their own, then those that only compute. Tests that change cluster-wide state run last, one at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from devtools.checks.suite.parts import BY_NAME, PARTS, Part, paths_of

WORKERS = 4
"""Number of pytest processes for the tests on the shared cluster, which mostly wait for pods."""
HOST_NICE = 5
"""Niceness of the other lanes' steps: they only have to finish together with the cluster lane's, whose pods and control
plane would otherwise wait for processors."""
UNIT_WORKERS = 2
"""Number of pytest processes for the unit tests, which only compute."""
MOST_FAILED = 25
"""Failed tests after which a step on the shared cluster ends: with that many the cluster is broken or the disk is full,
and each further test would wait for its own timeout."""

REPEATED = ("--reruns", "1")
"""pytest's arguments for tests with daemons that share two processors: one that fails is tried once more. The summary
names it, and more than `account.MOST_UNSTEADY` of them fail the run. A test that only computes has one attempt."""

FULL = "full"
"""The marker of tests that only `make test-full` runs."""
LINT, PYTEST, SETUP = "lint", "pytest", "setup"
CLUSTER, IMAGES, OPERATOR, NO_OPERATOR = "cluster", "images", "operator", "operator ended"
PARALLEL, SERIAL, EXCLUSIVE, UPGRADE = "parallel", "serial", "exclusive", "upgrade"
MARKERS = {
    PARALLEL: "not serial and not exclusive",
    SERIAL: "serial",  # changes cluster-wide state
    EXCLUSIVE: "exclusive",  # starts an operator that reconciles every job: no other operator may run
}


@dataclass(frozen=True)
class Step:
    """One thing to run: the linters, one call of pytest, or a change of the shared resources."""

    name: str
    kind: str = PYTEST
    """LINT, PYTEST or SETUP. A failed SETUP ends its lane."""
    arguments: tuple[str, ...] = ()
    """pytest's."""
    after: tuple[str, ...] = ()
    """Names of steps of the other lane that must have finished before."""
    nice: int = 0
    """Added to the niceness of its processes."""
    own_cluster: bool = False
    """Whether its tests start a cluster of their own, and so know nothing of what the others share."""


@dataclass(frozen=True)
class Lanes:
    """The steps of each lane in their order."""

    host: tuple[Step, ...] = ()
    cluster: tuple[Step, ...] = ()
    separate: tuple[Step, ...] = ()

    @property
    def all(self) -> tuple[tuple[Step, ...], ...]:
        return self.host, self.cluster, self.separate

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(step for lane in self.all for step in lane)


def plan(parts: Collection[Part], full: bool = False) -> Lanes:
    """The lanes for ``parts``; with ``full`` including the longest tests."""
    shared = [part for part in PARTS if part in parts and part.cluster]
    pooled = [part for part in shared if part is not _MOLECULE]
    single = [part for part in PARTS if part in parts and part not in shared]
    host = [_host_step(part, full) for part in single if part not in _SEPARATE]
    if _MOLECULE in shared:
        host = _with_scenarios(host, beside_others=bool(pooled))
    separate = [_host_step(part, full) for part in _SEPARATE if part in single]
    if shared:  # not before the shared cluster is up: most other steps wait for that one
        separate = [replace(step, after=_ready_for(step, pooled)) for step in separate]
    return Lanes(tuple(host), tuple(_cluster_steps(shared, pooled, full)), tuple(separate))


def quick() -> Lanes:
    """The lanes for every commit: the linters in parallel with the unit tests."""
    return Lanes(host=(_host_step(BY_NAME["lint"]),), cluster=(_host_step(BY_NAME["unit"]),))


_MOLECULE = BY_NAME["molecule"]
_DAEMONS = ("load", "lifecycle")
_SEPARATE = tuple(BY_NAME[name] for name in ("load", "lifecycle", "oldest", "unit"))


def _ready_for(step: Step, pooled: Sequence[Part]) -> tuple[str, ...]:
    """What must have finished on the shared cluster before a step that does not use it.

    The unit tests only compute, so they come when the steps left there, one test at a time, leave processors idle.
    """
    return (PARALLEL,) if pooled and step.name == BY_NAME["unit"].name else (IMAGES,)


def _host_step(part: Part, full: bool = False) -> Step:
    """One step for the whole part."""
    if not part.paths:
        return Step(part.name, LINT, nice=HOST_NICE)
    workers = UNIT_WORKERS if part.name == "unit" else 0
    marked = () if full else ("-m", f"not {FULL}")
    repeated = REPEATED if part.name in _DAEMONS else ()
    arguments = (*_parallel(workers), *repeated, *marked, *paths_of(part))
    return Step(part.name, PYTEST, arguments, nice=HOST_NICE, own_cluster=part.own_cluster)


def _with_scenarios(host: Sequence[Step], beside_others: bool) -> list[Step]:
    """The host's steps with those of molecule among them.

    The scenarios run right after the linters, in parallel with the parallel tests, since their operators reconcile only
    their own jobs. The upgrade scenario starts with the CRDs of the previous release: of the other tests only the
    serial ones, which need no field of this release, may run at the same time. The exclusive tests wait for it, so no
    long step of this lane comes before it.
    """
    scenarios = Step(
        _MOLECULE.name, PYTEST, (*REPEATED, "-m", MARKERS[PARALLEL], *_MOLECULE.paths), (IMAGES,), HOST_NICE
    )
    after = (PARALLEL,) if beside_others else (IMAGES,)
    upgrade = Step(UPGRADE, PYTEST, (*REPEATED, "-m", MARKERS[SERIAL], *_MOLECULE.paths), after, HOST_NICE)
    first = [step for step in host if step.kind == LINT]
    return [*first, scenarios, *(step for step in host if step not in first), upgrade]


def _cluster_steps(shared: Sequence[Part], pooled: Sequence[Part], full: bool) -> Iterator[Step]:
    """The tests on the shared cluster, one step per marker instead of one per part."""
    if not shared:
        return
    yield Step(CLUSTER, SETUP)
    yield Step(IMAGES, SETUP)
    if not pooled:
        return
    scenarios, upgrade = ((_MOLECULE.name,), (UPGRADE,)) if _MOLECULE in shared else ((), ())
    yield Step(OPERATOR, SETUP)
    yield Step(PARALLEL, PYTEST, (*_parallel(WORKERS), *_selected(pooled, PARALLEL, full)))
    yield Step(SERIAL, PYTEST, _selected(pooled, SERIAL, full), scenarios)
    yield Step(NO_OPERATOR, SETUP)
    yield Step(EXCLUSIVE, PYTEST, _selected(pooled, EXCLUSIVE, full), upgrade)


def _selected(parts: Sequence[Part], marker: str, full: bool) -> tuple[str, ...]:
    """pytest's arguments that select the tests of ``parts`` with ``marker``."""
    expression = MARKERS[marker] if full else f"({MARKERS[marker]}) and not {FULL}"
    return (*REPEATED, "-m", expression, f"--maxfail={MOST_FAILED}", *paths_of(*parts))


def _parallel(workers: int) -> tuple[str, ...]:
    # hand out tests one at a time: their durations differ by two orders of magnitude
    return ("-n", str(workers), "--dist", "load", "--maxschedchunk", "1") if workers else ()
