"""The summary at the end of a run: time per part, the slowest tests, the test count. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from devtools.checks.suite.parts import PARTS
from devtools.checks.suite.results import FAILED, PASSED, SKIPPED, Case

SLOWEST = 25
MOST_UNSTEADY = 3
"""Tests that may pass at the second attempt only. With more of them the run fails: something is wrong with all."""


@dataclass(frozen=True)
class Ended:
    """One finished step."""

    name: str
    seconds: float
    """Wall time from start to end."""
    processor_seconds: float
    """Of its own processes, without the cluster's daemons."""
    status: int
    """The exit status; 0 is success."""


def part_seconds(ended: Sequence[Ended], cases: Sequence[Case]) -> dict[str, float]:
    """Seconds by part, in the suite's order: the sum over its tests, or the wall time of the linters."""
    spent: dict[str, float] = {}
    for case in cases:
        spent[case.part] = spent.get(case.part, 0.0) + case.seconds
    spent |= {step.name: step.seconds for step in ended if step.name == "lint"}
    return {part.name: spent[part.name] for part in PARTS if part.name in spent}


def account(ended: Sequence[Ended], cases: Sequence[Case], wall: float) -> str:
    """The whole text. Its last line counts the tests; failed linters and aborted steps count as failures."""
    spent = part_seconds(ended, cases)
    slowest = sorted(cases, key=lambda case: -case.seconds)[:SLOWEST]
    processor = sum(one.processor_seconds for one in ended)
    return "\n".join(
        [
            "",
            f"{'step':<16}{'wall':>8}{'processor':>13}",
            *(f"{one.name:<16}{one.seconds:6.0f} s{one.processor_seconds:11.0f} s{_mark(one)}" for one in ended),
            "",
            f"{'part':<16}{'tests':>6}{'their time':>13}",
            *(_part_line(name, seconds, cases) for name, seconds in spent.items()),
            "",
            f"the {len(slowest)} slowest tests",
            *(f"{case.seconds:6.1f} s  {case.name}" for case in slowest),
            "",
            *(f"warning: {case.name} failed, and passed at the second attempt" for case in unsteady(cases)),
            *(f"failed: {case.name}" for case in cases if case.outcome == FAILED),
            *(f"failed: step {name}" for name in broken(ended, cases)),
            *(["failed: too many tests passed at the second attempt only"] if is_unsteady(cases) else []),
            f"wall time {_minutes(wall)}, processor time {_minutes(processor)} without the cluster's own",
            count_line(ended, cases),
        ]
    )


def unsteady(cases: Sequence[Case]) -> list[Case]:
    """The tests that passed, but not at once."""
    return [case for case in cases if case.unsteady]


def is_unsteady(cases: Sequence[Case]) -> bool:
    """Whether more than MOST_UNSTEADY tests passed, but not at once."""
    return len(unsteady(cases)) > MOST_UNSTEADY


def broken(ended: Sequence[Ended], cases: Sequence[Case]) -> list[str]:
    """Steps that failed without a failed test: linters, set-up, an aborted pytest."""
    failed_tests = any(case.outcome == FAILED for case in cases)
    return [one.name for one in ended if one.status and not (one.status == 1 and one.name != "lint" and failed_tests)]


def count_line(ended: Sequence[Ended], cases: Sequence[Case]) -> str:
    """``N passed, N failed`` and, if there are any, ``, N skipped`` and ``, N unsteady``."""
    count = {outcome: sum(case.outcome == outcome for case in cases) for outcome in (PASSED, FAILED, SKIPPED)}
    passed = count[PASSED] + sum(one.name == "lint" and not one.status for one in ended)
    failed = count[FAILED] + len(broken(ended, cases)) + is_unsteady(cases)
    skipped = f", {count[SKIPPED]} skipped" if count[SKIPPED] else ""
    twice = f", {len(unsteady(cases))} unsteady" if unsteady(cases) else ""
    return f"{passed} passed, {failed} failed{skipped}{twice}"


def _part_line(name: str, seconds: float, cases: Sequence[Case]) -> str:
    count = sum(case.part == name for case in cases)
    return f"{name:<16}{count:6}{seconds:11.0f} s"


def _mark(step: Ended) -> str:
    return f"   FAILED ({step.status})" if step.status else ""


def _minutes(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s"
