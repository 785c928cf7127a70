"""The parts of the suite, and the tests that belong to each. Pure.

A test belongs to the part with the longest matching path. ``lint`` is the only part that does not run pytest.
"""

from __future__ import annotations

from dataclasses import dataclass


class UnknownPart(ValueError):
    """No part has that name; the message lists the parts."""


@dataclass(frozen=True)
class Part:
    """One part: its tests, and whether it needs the cluster."""

    name: str
    about: str
    paths: tuple[str, ...] = ()
    """Files and folders of its tests, relative to the repository's root."""
    cluster: bool = False
    """Whether its tests use the shared local cluster."""
    own_cluster: bool = False
    """Whether its tests use a local cluster of their own, which they start and end."""


PARTS: tuple[Part, ...] = (
    Part("lint", "every linter, and whether generated files are current"),
    Part("unit", "pure logic, the runner and the tools; no cluster", ("tests/unit", "tests/integration/tooling")),
    Part(
        "oldest",
        "the unit tests with the oldest supported ansible-core and kubernetes",
        ("tests/integration/collection/test_oldest.py",),
    ),
    Part("collection", "ansible-test sanity, the tarball and the wheel", ("tests/integration/collection",)),
    Part("lifecycle", "creation and removal of separate clusters", ("tests/integration/test_cluster_lifecycle.py",)),
    Part(
        "engine",
        "the engines, the API layer and the permissions on a real API server",
        ("tests/integration/engine", "tests/integration/api", "tests/integration/rights"),
        cluster=True,
    ),
    Part("crds", "the schemas on a real API server", ("tests/integration/crds",), cluster=True),
    Part("docs", "every command and link in the documentation", ("tests/integration/docs",), cluster=True),
    Part("e2e", "jobs in real pods, real training", ("tests/e2e",), cluster=True),
    Part("molecule", "the scenarios of molecule/", ("tests/e2e/test_molecule.py",), cluster=True),
    Part("deployment", "the operator's image by kustomize and Helm", ("tests/e2e/test_deployment.py",), cluster=True),
    Part("bench", "the benchmark's harness with tiny workloads", ("tests/e2e/test_bench.py",), cluster=True),
    Part(
        "load",
        "the chaos, the fuzz and the soak run in small, and crashes at single writes",
        (
            "tests/e2e/test_chaos.py",
            "tests/e2e/test_crash_at_each_write.py",
            "tests/e2e/test_fuzz.py",
            "tests/e2e/test_soak.py",
        ),
        own_cluster=True,
    ),
)

BY_NAME = {part.name: part for part in PARTS}


def chosen(names: str) -> tuple[Part, ...]:
    """The parts in the comma-separated ``names``, in the suite's order; all of them for "".

    Raises UnknownPart.
    """
    wanted = {name.strip() for name in names.split(",") if name.strip()}
    for name in sorted(wanted - BY_NAME.keys()):
        raise UnknownPart(f"PART: there is no part {name!r}; the parts are {', '.join(BY_NAME)}")
    return tuple(part for part in PARTS if not wanted or part.name in wanted)


def part_of(path: str) -> str:
    """The name of the part that the test file ``path`` belongs to, "" for none."""
    found = [(len(own), part.name) for part in PARTS for own in part.paths if path == own or path.startswith(f"{own}/")]
    return max(found)[1] if found else ""


def paths_of(*parts: Part) -> list[str]:
    """pytest's arguments for the parts' own tests: their paths, without the tests of other parts."""
    paths = [path for part in parts for path in part.paths]
    others = [
        path
        for other in PARTS
        if other not in parts
        for path in other.paths
        if any(path.startswith(f"{mine}/") for mine in paths)
    ]
    return [*paths, *(f"--ignore={path}" for path in others)]
