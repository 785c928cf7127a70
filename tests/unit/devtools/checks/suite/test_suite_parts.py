"""Every test belongs to one part, and a run of all parts runs each test exactly once."""

from __future__ import annotations

import fnmatch
from pathlib import Path

import pytest
from devtools.checks.suite import plan
from devtools.checks.suite.parts import BY_NAME, PARTS, UnknownPart, chosen, part_of, paths_of

ROOT = Path(__file__).resolve().parents[5]
FILES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py"))


@pytest.mark.parametrize("path", FILES)
def test_a_file_of_tests_belongs_to_a_part(path: str) -> None:
    assert part_of(path) in BY_NAME


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("tests/unit/logic/plan/test_plan.py", "unit"),
        ("tests/e2e/test_kubectl.py", "e2e"),
        ("tests/e2e/test_molecule.py", "molecule"),
        ("tests/e2extra/test_x.py", ""),
        ("tests/integration/test_cluster_lifecycle.py", "lifecycle"),
    ],
)
def test_the_longest_path_decides(path: str, part: str) -> None:
    assert part_of(path) == part


def test_paths_of_a_part_leave_out_what_is_another_parts() -> None:
    found = paths_of(BY_NAME["e2e"])
    assert "tests/e2e" in found
    assert "--ignore=tests/e2e/test_molecule.py" in found
    assert "--ignore=tests/unit" not in found


def test_parts_come_in_the_suites_order() -> None:
    assert [part.name for part in chosen("e2e, unit")] == ["unit", "e2e"]
    assert chosen("") == PARTS


def test_an_unknown_part_is_reported_with_the_known_ones() -> None:
    with pytest.raises(UnknownPart, match="no part 'e3e'; the parts are lint, unit"):
        chosen("unit,e3e")


def collected(step: plan.Step) -> set[str]:
    """The files of which pytest collects tests for this step."""
    paths = [a for a in step.arguments if a.startswith("tests/")]
    ignored = [a.removeprefix("--ignore=") for a in step.arguments if a.startswith("--ignore=")]

    def below(path: str, folders: list[str]) -> bool:
        return any(path == folder or path.startswith(f"{folder}/") for folder in folders)

    return {path for path in FILES if below(path, paths) and not below(path, ignored)}


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_a_part_alone_runs_its_files_and_no_others(part: object) -> None:
    lanes = plan.plan([part])  # type: ignore[list-item]
    assert {path for step in lanes.steps for path in collected(step)} == {p for p in FILES if part_of(p) == part.name}  # type: ignore[attr-defined]


def test_the_whole_suite_runs_every_file_once() -> None:
    lanes = plan.plan(PARTS)
    scenarios = {"tests/e2e/test_molecule.py"}
    runs = [
        path
        for step in (*lanes.host, *lanes.separate)
        if step.name not in ("molecule", "upgrade")
        for path in collected(step)
    ]
    by_marker = [collected(step) for step in lanes.cluster if step.name in plan.MARKERS]
    assert len(by_marker) == len(plan.MARKERS)
    assert all(files == by_marker[0] for files in by_marker), "the steps differ only in their markers"
    assert [collected(step) for step in lanes.host if step.name in ("molecule", "upgrade")] == [scenarios, scenarios]
    text = (ROOT / "tests/e2e/test_molecule.py").read_text(encoding="utf-8")
    assert "mark.exclusive" not in text, "no step would run it"
    assert sorted([*runs, *by_marker[0], *scenarios]) == FILES


def test_the_markers_leave_out_no_test() -> None:
    """For any combination of markers exactly one of the three expressions selects the test; both markers are invalid."""
    for serial in (True, False):
        for exclusive in (True, False):
            taken = [
                eval(expression, {"serial": serial, "exclusive": exclusive}) for expression in plan.MARKERS.values()
            ]
            assert any(taken)
            assert sum(taken) == 1 or (serial and exclusive)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("part", ["bench", "load", "unit", "e2e, molecule, load"])
def test_the_longest_tests_are_for_the_full_run(part: str, full: bool) -> None:
    steps = [step for step in plan.plan(chosen(part), full).steps if step.name in {*plan.MARKERS, "load", "unit"}]
    expressions = [dict(zip(step.arguments, step.arguments[1:], strict=False)).get("-m", "True") for step in steps]
    marked = {"serial": False, "exclusive": True, "full": True}
    assert any(eval(expression, marked) for expression in expressions) is full


def test_the_order_of_the_whole_suite() -> None:
    lanes = plan.plan(PARTS)
    assert [(step.name, *step.after) for step in lanes.cluster] == [
        ("cluster",),
        ("images",),
        ("operator",),
        ("parallel",),
        ("serial", "molecule"),
        ("operator ended",),
        ("exclusive", "upgrade"),
    ]
    assert [(step.name, *step.after) for step in lanes.host] == [
        ("lint",),
        ("molecule", "images"),
        ("collection",),
        ("upgrade", "parallel"),
    ]
    assert [step.name for step in lanes.separate] == ["load", "lifecycle", "oldest", "unit"]
    assert [step.after for step in lanes.separate] == [("images",), ("images",), ("images",), ("parallel",)]


def test_tests_with_a_cluster_of_their_own_know_nothing_of_the_shared_one() -> None:
    assert [step.name for step in plan.plan(PARTS).steps if step.own_cluster] == ["load"]
    (alone,) = plan.plan(chosen("load")).steps
    assert (alone.own_cluster, alone.after) == (True, ())


def test_molecule_alone_needs_no_shared_operator() -> None:
    lanes = plan.plan(chosen("molecule"))
    assert [step.name for step in lanes.steps] == ["molecule", "upgrade", "cluster", "images"]


@pytest.mark.parametrize("names", ["lint", "unit", "lint,unit,oldest,collection,lifecycle"])
def test_what_needs_no_cluster_brings_none_up(names: str) -> None:
    assert plan.plan(chosen(names)).cluster == ()


def test_no_step_waits_for_one_that_is_not_there() -> None:
    for names in ("", "molecule", "e2e", "e2e,molecule", "deployment", "unit"):
        lanes = plan.plan(chosen(names))
        there = {step.name for step in lanes.steps}
        assert {name for step in lanes.steps for name in step.after} <= there


def test_the_quick_run_is_linters_and_unit_tests() -> None:
    lanes = plan.quick()
    assert [step.kind for step in lanes.host] == [plan.LINT]
    assert {path for step in lanes.cluster for path in collected(step)} == {p for p in FILES if part_of(p) == "unit"}


def test_the_hosts_steps_give_way_to_the_cluster() -> None:
    lanes = plan.plan(PARTS)
    assert {step.nice for step in (*lanes.host, *lanes.separate)} == {plan.HOST_NICE}
    assert {step.nice for step in lanes.cluster} == {0}


def test_steps_on_a_broken_cluster_end_after_some_failures() -> None:
    steps = [step for step in plan.plan(PARTS).cluster if step.kind == plan.PYTEST]
    assert steps and all(f"--maxfail={plan.MOST_FAILED}" in step.arguments for step in steps)


def test_a_test_with_daemons_is_tried_again_and_one_that_computes_is_not() -> None:
    steps = [step for step in (*plan.plan(PARTS).steps, *plan.quick().steps) if step.kind == plan.PYTEST]
    once = {step.name for step in steps if "--reruns" not in step.arguments}
    assert once == {"unit", "oldest", "collection"}


def test_pytest_passes_over_no_folder_with_tests(pytestconfig: pytest.Config) -> None:
    patterns = pytestconfig.getini("norecursedirs")
    names = {part for path in (ROOT / "tests").rglob("test_*.py") for part in path.relative_to(ROOT).parts[:-1]}
    assert [name for name in sorted(names) if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)] == []
