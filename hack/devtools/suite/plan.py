"""What runs where: the steps of both lanes, for the parts that were asked for. Pure.

Two lanes, because most of the suite waits: one lane keeps a processor busy with what needs no cluster, the other
brings the cluster up and runs the tests whose pods take their time. Tests that change the cluster for everybody come
last and alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from devtools.suite.parts import BY_NAME, PARTS, Part, paths_of

WORKERS = 4
"""pytest processes for the tests on the shared cluster: they wait for pods far longer than they compute."""
HOST_NICE = 5
"""The host's steps only have to be through by the time that the cluster's are, whose pods and control plane wait for
processors otherwise."""
UNIT_WORKERS = 2
"""pytest processes for the unit tests, which only compute."""

FULL = "full"
"""The marker of tests that only `make test-full` runs."""
LINT, PYTEST, SETUP = "lint", "pytest", "setup"
CLUSTER, IMAGES, OPERATOR, NO_OPERATOR = "cluster", "images", "operator", "operator ended"
PARALLEL, SERIAL, EXCLUSIVE, UPGRADE = "parallel", "serial", "exclusive", "upgrade"
MARKERS = {
    PARALLEL: "not serial and not exclusive",
    SERIAL: "serial",  # changes the cluster for everybody
    EXCLUSIVE: "exclusive",  # starts an operator that takes every job: there must be no other
}


@dataclass(frozen=True)
class Step:
    """One thing to run: the linters, one call of pytest, or a change of what the tests share."""

    name: str
    kind: str = PYTEST
    """LINT, PYTEST or SETUP. After a SETUP that fails its lane does not go on."""
    arguments: tuple[str, ...] = ()
    """pytest's."""
    after: tuple[str, ...] = ()
    """Names of steps of the other lane that must have ended."""
    nice: int = 0
    """What its processes add to their niceness."""


@dataclass(frozen=True)
class Lanes:
    """The steps of both lanes, each in its order."""

    host: tuple[Step, ...] = ()
    cluster: tuple[Step, ...] = ()


def plan(parts: Collection[Part], full: bool = False) -> Lanes:
    """The lanes for ``parts``; with ``full`` the longest tests too."""
    shared = [part for part in PARTS if part in parts and part.cluster]
    pooled = [part for part in shared if part is not _MOLECULE]
    host = [_host_step(part) for part in PARTS if part in parts and part not in shared]
    if _MOLECULE in shared:
        host = _with_scenarios(host, beside_others=bool(pooled))
    return Lanes(tuple(host), tuple(_cluster_steps(shared, pooled, full)))


def quick() -> Lanes:
    """What suits every commit: the linters beside the unit tests."""
    return Lanes(host=(_host_step(BY_NAME["lint"]),), cluster=(_host_step(BY_NAME["unit"]),))


_MOLECULE = BY_NAME["molecule"]


def _host_step(part: Part) -> Step:
    """One step for the whole part."""
    if not part.paths:
        return Step(part.name, LINT, nice=HOST_NICE)
    workers = UNIT_WORKERS if part.name == "unit" else 0
    return Step(part.name, PYTEST, (*_parallel(workers), *paths_of(part)), nice=HOST_NICE)


def _with_scenarios(host: Sequence[Step], beside_others: bool) -> list[Step]:
    """The host's steps with those of molecule among them.

    The scenarios come right after the linters, beside the parallel tests: their operators take only the jobs of their
    own. The upgrade begins with the CRDs of the previous release: of the other tests only the serial ones, which need
    no field of this release, may meet them.
    """
    scenarios = Step(_MOLECULE.name, PYTEST, ("-m", MARKERS[PARALLEL], *_MOLECULE.paths), (IMAGES,), HOST_NICE)
    after = (PARALLEL,) if beside_others else (IMAGES,)
    upgrade = Step(UPGRADE, PYTEST, ("-m", MARKERS[SERIAL], *_MOLECULE.paths), after, HOST_NICE)
    first = [step for step in host if step.kind == LINT]
    unit = [step for step in host if step.name == "unit"]
    return [*first, scenarios, *unit, upgrade, *(step for step in host if step not in (*first, *unit))]


def _cluster_steps(shared: Sequence[Part], pooled: Sequence[Part], full: bool) -> Iterator[Step]:
    """The tests on the shared cluster, told apart by their markers and not by their parts."""
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
    """pytest's arguments for those tests of ``parts`` that ``marker`` stands for."""
    expression = MARKERS[marker] if full else f"({MARKERS[marker]}) and not {FULL}"
    return ("-m", expression, *paths_of(*parts))


def _parallel(workers: int) -> tuple[str, ...]:
    # one test at a time for each worker: they differ by two orders of magnitude
    return ("-n", str(workers), "--dist", "load", "--maxschedchunk", "1") if workers else ()
