"""What runs where: the steps of both lanes, for the parts that were asked for. Pure.

Two lanes, because most of the suite waits: one lane keeps a processor busy with what needs no cluster, the other
brings the cluster up and runs the tests whose pods take their time. Tests that change the cluster for everybody come
last and alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from suite.parts import BY_NAME, PARTS, Part, paths_of

WORKERS = 4
"""pytest processes for the tests on the shared cluster: they wait for pods far longer than they compute."""
UNIT_WORKERS = 2
"""pytest processes for the unit tests, which only compute."""

FULL = "full"
"""The marker of tests that only `make test-full` runs."""
LINT, PYTEST, SETUP = "lint", "pytest", "setup"
CLUSTER, IMAGES, OPERATOR, NO_OPERATOR = "cluster", "images", "operator", "operator ended"
PARALLEL, SERIAL, EXCLUSIVE = "parallel", "serial", "exclusive"
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


@dataclass(frozen=True)
class Lanes:
    """The steps of both lanes, each in its order."""

    host: tuple[Step, ...] = ()
    cluster: tuple[Step, ...] = ()


def plan(parts: Collection[Part], full: bool = False) -> Lanes:
    """The lanes for ``parts``; with ``full`` the longest tests too."""
    pooled = [part for part in parts if part.cluster and part is not _MOLECULE]
    molecule = _MOLECULE in parts
    host = [_host_step(part) for part in PARTS if part in parts and part not in pooled]
    if not pooled and not molecule:
        return Lanes(tuple(host))
    cluster = [Step(CLUSTER, SETUP), Step(IMAGES, SETUP)]
    if pooled:
        cluster += _pooled_steps(pooled, (_MOLECULE.name,) if molecule else (), full)
    return Lanes(tuple(host), tuple(cluster))


def quick() -> Lanes:
    """What suits every commit: the linters beside the unit tests."""
    return Lanes(host=(_host_step(BY_NAME["lint"]),), cluster=(_host_step(BY_NAME["unit"]),))


_MOLECULE = BY_NAME["molecule"]


def _host_step(part: Part) -> Step:
    """One step for the whole part."""
    if not part.paths:
        return Step(part.name, LINT)
    workers = UNIT_WORKERS if part.name == "unit" else 0
    # molecule runs beside the parallel tests: its operator takes only the jobs of its own scenarios
    after = (IMAGES,) if part.cluster else ()
    return Step(part.name, PYTEST, (*_parallel(workers), *paths_of(part)), after)


def _pooled_steps(parts: Sequence[Part], after: tuple[str, ...], full: bool) -> list[Step]:
    """The tests on the shared cluster, told apart by their markers and not by their parts."""
    paths = [path for part in parts for path in part.paths]
    others = [
        f"--ignore={path}"
        for part in PARTS
        if part not in parts
        for path in part.paths
        if any(path.startswith(f"{mine}/") for mine in paths)
    ]

    def step(name: str, *arguments: str, after: tuple[str, ...] = ()) -> Step:
        marked = MARKERS[name] if full else f"({MARKERS[name]}) and not {FULL}"
        return Step(name, PYTEST, (*arguments, "-m", marked, *paths, *others), after)

    return [
        Step(OPERATOR, SETUP),
        step(PARALLEL, *_parallel(WORKERS)),
        step(SERIAL, after=after),
        Step(NO_OPERATOR, SETUP),
        step(EXCLUSIVE),
    ]


def _parallel(workers: int) -> tuple[str, ...]:
    # one test at a time for each worker: they differ by two orders of magnitude
    return ("-n", str(workers), "--dist", "load", "--maxschedchunk", "1") if workers else ()
