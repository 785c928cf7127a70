"""What a run that stays tells of a batch while some of its jobs still go on."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.action.reconcile import PARALLEL_JOBS, ActionModule

Part = tuple[list[str], bool]


class Reconciles(ActionModule):  # type: ignore[misc]
    """Jobs are through once the test says so."""

    def __init__(self) -> None:
        self.through = {name: threading.Event() for name in "abcdef"}

    def _one(self, api: Any, job: Mapping[str, Any], *rest: Any) -> Any:
        assert self.through[job["name"]].wait(30)
        if job.get("breaks"):
            raise RuntimeError("a fault of the plugin itself")
        return job["name"]

    def parts(self, names: str, every: float | None, **more: Any) -> Iterator[Part]:
        jobs = [{"name": name, **more} for name in names]
        yield from self._parts(None, jobs, None, {}, None, every)

    def finish(self, names: str) -> None:
        for name in names:
            self.through[name].set()


def test_those_that_are_through_are_told_and_then_the_rest() -> None:
    action = Reconciles()
    parts = action.parts("abcd", 0.01)
    action.finish("bd")
    told: list[str] = []
    while len(told) < 2:
        names, is_last = next(parts)
        assert not is_last
        told += names
    assert told == ["b", "d"]
    action.finish("ac")
    rest = list(parts)
    assert sorted(name for names, _ in rest for name in names) == ["a", "c"]
    assert [is_last for _, is_last in rest] == [False] * (len(rest) - 1) + [True]


def test_jobs_that_wait_for_their_turn_are_not_lost() -> None:
    action = Reconciles()
    action.finish("abcdef")
    assert len("abcdef") > PARALLEL_JOBS
    assert [name for names, _ in action.parts("abcdef", 0.01) for name in names] == list("abcdef")


@pytest.mark.parametrize("names", ["a", "abcdef"])
def test_whoever_has_no_use_for_parts_gets_one(names: str) -> None:
    action = Reconciles()
    action.finish(names)
    assert list(action.parts(names, None)) == [(list(names), True)]


def test_a_fault_is_not_swallowed() -> None:
    action = Reconciles()
    action.finish("ab")
    with pytest.raises(RuntimeError, match="a fault of the plugin itself"):
        list(action.parts("ab", 0.01, breaks=True))
