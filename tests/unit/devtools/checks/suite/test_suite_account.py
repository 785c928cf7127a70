from __future__ import annotations

from pathlib import Path

import pytest
from devtools.checks.suite import results
from devtools.checks.suite.account import SLOWEST, Ended, account, broken, count_line, part_seconds
from devtools.checks.suite.results import FAILED, PASSED, SKIPPED, Case

ROOT = Path(__file__).resolve().parents[5]


def case(
    name: str = "tests/unit/a.py::test_a",
    seconds: float = 1.0,
    outcome: str = PASSED,
    part: str = "unit",
    attempts: int = 1,
) -> Case:
    return Case(part, name, seconds, outcome, attempts)


JUNIT = """<?xml version="1.0"?><testsuites><testsuite name="pytest">
<testcase file="tests/unit/logic/plan/test_plan.py" classname="x" name="test_good[a-1]" time="0.5"/>
<testcase file="tests/e2e/test_kubectl.py" classname="x" name="test_bad" time="2.25"><failure message="m">t</failure></testcase>
<testcase file="tests/e2e/test_kubectl.py" classname="x" name="test_broken" time="0"><error message="m">t</error></testcase>
<testcase file="tests/e2e/test_kubectl.py" classname="x" name="test_left_out" time="0"><skipped message="m"/></testcase>
<testcase file="tests/e2e/test_kubectl.py" classname="x" name="test_twice" time="3"/>
<testcase file="tests/e2e/test_kubectl.py" classname="y" name="test_twice" time="3"/>
<testcase file="tests/e2e/test_kubectl.py" classname="x" name="test_twice" time="1.5"/>
<testcase file="tests/e2e/test_kubectl.py" classname="x" name="test_red" time="1"/>
<testcase file="tests/e2e/test_kubectl.py" classname="x" name="test_red" time="1"><failure message="m">t</failure></testcase>
</testsuite></testsuites>"""


def test_pytests_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "e2e.xml").write_text(JUNIT)
    assert results.read([tmp_path / "e2e.xml", tmp_path / "never-written.xml"]) == [
        Case("unit", "tests/unit/logic/plan/test_plan.py::test_good[a-1]", 0.5, PASSED),
        Case("e2e", "tests/e2e/test_kubectl.py::test_bad", 2.25, FAILED),
        Case("e2e", "tests/e2e/test_kubectl.py::test_broken", 0.0, FAILED),
        Case("e2e", "tests/e2e/test_kubectl.py::test_left_out", 0.0, SKIPPED),
        Case("e2e", "tests/e2e/test_kubectl.py::test_twice", 4.5, PASSED, attempts=2),
        Case("e2e", "tests/e2e/test_kubectl.py::test_twice", 3.0, PASSED),
        Case("e2e", "tests/e2e/test_kubectl.py::test_red", 2.0, FAILED, attempts=2),
    ]


def test_a_parts_time_is_that_of_its_tests_and_the_linters_own() -> None:
    ended = [Ended("lint", 40.0, 60.0, 0), Ended("parallel", 9.0, 1.0, 0)]
    cases = [case(seconds=2), case(seconds=3), case(seconds=7, part="e2e")]
    assert part_seconds(ended, cases) == {"lint": 40.0, "unit": 5.0, "e2e": 7.0}


@pytest.mark.parametrize(
    ("ended", "cases", "line", "steps"),
    [
        ([Ended("unit", 1, 1, 0)], [case()], "1 passed, 0 failed", []),
        ([Ended("unit", 1, 1, 1)], [case(), case(outcome=FAILED)], "1 passed, 1 failed", []),
        ([Ended("lint", 1, 1, 0)], [], "1 passed, 0 failed", []),
        ([Ended("lint", 1, 1, 1)], [case(outcome=FAILED)], "0 passed, 2 failed", ["lint"]),
        ([Ended("unit", 1, 1, 0)], [case(outcome=SKIPPED)], "0 passed, 0 failed, 1 skipped", []),
        # aborted: pytest's status 2, a kill, or a failed set-up
        ([Ended("unit", 1, 1, 2)], [case(outcome=FAILED)], "0 passed, 2 failed", ["unit"]),
        ([Ended("unit", 1, 1, -9)], [case()], "1 passed, 1 failed", ["unit"]),
        ([Ended("cluster", 1, 0, 1)], [], "0 passed, 1 failed", ["cluster"]),
        # passed at the second attempt; with too many of them the run has failed
        ([Ended("unit", 1, 1, 0)], [case(attempts=2)] * 3, "3 passed, 0 failed, 3 unsteady", []),
        ([Ended("unit", 1, 1, 0)], [case(attempts=2)] * 4, "4 passed, 1 failed, 4 unsteady", []),
        ([Ended("unit", 1, 1, 1)], [case(outcome=FAILED, attempts=2)], "0 passed, 1 failed", []),
    ],
)
def test_the_count(ended: list[Ended], cases: list[Case], line: str, steps: list[str]) -> None:
    assert count_line(ended, cases) == line
    assert broken(ended, cases) == steps


def test_the_account_names_what_failed_what_was_slow_and_ends_with_the_count() -> None:
    cases = [case(f"tests/unit/a.py::test_{n}", float(n)) for n in range(40)]
    cases.append(case("tests/e2e/b.py::test_red", 0.1, FAILED, "e2e"))
    cases.append(case("tests/e2e/b.py::test_amber", 0.1, PASSED, "e2e", attempts=2))
    ended = [Ended("unit", 800.0, 95.4, 0), Ended("parallel", 12.0, 3.0, 1)]
    lines = account(ended, cases, 754.0).splitlines()
    assert lines[-1] == "41 passed, 1 failed, 1 unsteady"
    assert "warning: tests/e2e/b.py::test_amber failed, and passed at the second attempt" in lines
    assert lines[-2] == "wall time 12 min 34 s, processor time 1 min 38 s without the cluster's own"
    assert "failed: tests/e2e/b.py::test_red" in lines
    slow = [line.split()[-1] for line in lines if "::test_" in line and line.startswith(" ")]
    assert slow == [f"tests/unit/a.py::test_{n}" for n in range(39, 39 - SLOWEST, -1)]


def test_too_many_unsteady_tests_are_named() -> None:
    lines = account([Ended("e2e", 1, 1, 0)], [case(attempts=2)] * 4, 1.0).splitlines()
    assert "failed: too many tests passed at the second attempt only" in lines
