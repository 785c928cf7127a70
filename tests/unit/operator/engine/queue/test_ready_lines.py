"""Which ready jobs the next thread takes."""

from __future__ import annotations

import pytest
from support.clock import Clock

from dljob_operator.engine.queue.fair_queue import Flow
from dljob_operator.engine.queue.ready_lines import FEW, LONG, PASSED_OVER, SLOW_FOR, Line, ReadyLines

G, H = Flow("g", "default"), Flow("h", "default")
OTHER = Flow("g", "other")


@pytest.fixture
def lines() -> ReadyLines:
    return ReadyLines(threads=3)


def take(lines: ReadyLines, *, takers: int = 1, most: int = 25, alone: str = "", thread: int = 1) -> list[str] | None:
    return lines.take(thread, takers, lambda target: most, lambda key: key != alone)


def test_earlier_lines_come_first_but_pass_over_none_for_long(lines: ReadyLines) -> None:
    for number in range(9):
        lines.add(f"changed-{number}", G, Line.CHANGED)
    lines.add("owned", G, Line.OWNED)
    taken = [take(lines, most=1) for _ in range(PASSED_OVER + 2)]
    assert taken[PASSED_OVER] == ["owned"]
    assert [keys[0][:7] for keys in taken if keys and keys != ["owned"]] == ["changed"] * (PASSED_OVER + 1)


def test_a_burst_of_one_namespace_does_not_delay_the_statuses_of_another(lines: ReadyLines) -> None:
    for number in range(6):
        lines.add(f"changed-{number}", G, Line.CHANGED)
    lines.add("own", G, Line.OWNED)
    for number in range(4):
        lines.add(f"other-{number}", OTHER, Line.OWNED)
    taken = [take(lines, most=1) for _ in range(11)]
    assert [keys[0] for keys in taken if keys] == [
        *("changed-0", "other-0", "changed-1", "other-1", "changed-2", "other-2", "changed-3"),
        "own",  # after four takes from the earlier line, which those of the other namespace do not count as
        *("changed-4", "other-3", "changed-5"),
    ]


def test_a_changed_job_comes_before_the_statuses_of_other_namespaces(lines: ReadyLines) -> None:
    for round_ in range(3):
        for number in range(2):
            lines.add(f"other-{number}", OTHER, Line.OWNED)
        lines.add("changed", G, Line.CHANGED)
        assert [take(lines, most=1) for _ in range(4)] == [["changed"], ["other-0"], ["other-1"], None], round_


def test_a_large_job_is_passed_over_by_no_more_takes_where_the_namespaces_alternate(lines: ReadyLines) -> None:
    for number in range(9):
        lines.add(f"changed-{number}", G, Line.CHANGED)
        lines.add(f"other-{number}", OTHER, Line.OWNED)
    lines.add("large", G, Line.CONTINUING)
    assert [take(lines, most=1) for _ in range(PASSED_OVER + 1)][PASSED_OVER] == ["large"]


def test_a_line_that_was_passed_over_gets_a_small_take(lines: ReadyLines) -> None:
    for number in range(9):
        lines.add(f"changed-{number}", G, Line.CHANGED)
        lines.add(f"owned-{number}", G, Line.OWNED)
    taken = [take(lines, most=2) for _ in range(PASSED_OVER)]
    assert taken == [[f"changed-{number}", f"changed-{number + 1}"] for number in range(0, 8, 2)]
    assert take(lines) == [f"owned-{number}" for number in range(FEW)]
    assert take(lines) == ["changed-8"]
    assert take(lines) == [f"owned-{number}" for number in range(FEW, 9)], "no earlier line waits"


def test_keys_of_a_target_are_divided_among_the_takers(lines: ReadyLines) -> None:
    for number in range(5):
        lines.add(f"g-{number}", G, Line.OWNED)
    lines.add("h", H, Line.OWNED)
    assert take(lines, takers=2) == ["g-0", "g-1", "g-2"]
    assert take(lines, alone="g-3") == ["g-3"]
    assert take(lines) == ["g-4"]
    assert len(lines) == 1


def test_one_thread_never_continues_a_job(lines: ReadyLines) -> None:
    for key in ("first", "second", "third"):
        lines.add(key, G, Line.CONTINUING)
    assert [take(lines, most=1, thread=number) for number in (1, 2, 3)] == [["first"], ["second"], None]
    assert lines.continuing(1, ("first", "second", "third")) == ["first"]
    assert not lines.returned(2, "first"), "another thread's run"
    assert lines.returned(1, "first")
    assert take(lines, most=1) == ["third"]


def test_a_changed_job_moves_up(lines: ReadyLines) -> None:
    lines.add("changed", G, Line.CHANGED)
    lines.add("large", G, Line.CONTINUING)
    lines.add("owned", G, Line.OWNED)
    lines.move_up("large", G)
    lines.move_up("not ready", G)
    assert [take(lines, most=1) for _ in range(4)] == [["changed"], ["large"], ["owned"], None]


def test_a_discarded_job_is_not_taken(lines: ReadyLines) -> None:
    for line in Line:
        lines.add(line.name, G, line)
        lines.discard(line.name)
    assert take(lines) is None


def test_a_namespace_is_slow_for_a_while_after_a_long_reconcile() -> None:
    clock = Clock()
    lines = ReadyLines(2, clock)
    lines.took("default", LONG - 0.1)
    lines.add("a", G, Line.CHANGED)
    lines.add("b", G, Line.OWNED)
    assert [take(lines, most=1, thread=1), take(lines, most=1, thread=2)] == [["a"], ["b"]], "not slow yet"
    lines.add("a", G, Line.CHANGED)
    lines.took("default", LONG)
    lines.add("b", G, Line.CHANGED)
    lines.move_up("b", G)
    assert [take(lines, most=1, thread=1), take(lines, most=1, thread=2)] == [["a"], None]
    assert lines.returned(1, "a")
    assert take(lines, most=1, thread=1) == ["b"]
    assert lines.returned(1, "b")
    clock.now += SLOW_FOR
    lines.add("a", G, Line.CHANGED)
    lines.add("b", G, Line.CHANGED)
    assert [take(lines, most=1, thread=1), take(lines, most=1, thread=2)] == [["a"], ["b"]]


def test_what_is_left_of_a_slow_namespace_moves_up_once_it_is_slow_no_more() -> None:
    clock = Clock()
    lines = ReadyLines(2, clock)
    lines.took("default", LONG)
    for key in ("a", "b"):
        lines.add(key, G, Line.OWNED)
    clock.now += SLOW_FOR
    lines.add("c", G, Line.CHANGED)
    lines.move_up("b", G)
    assert [take(lines, most=1) for _ in range(3)] == [["c"], ["b"], ["a"]]


def test_the_place_of_a_batch_is_free_once_all_of_its_keys_have_returned() -> None:
    lines = ReadyLines(2)
    lines.took("default", LONG)
    for key in ("a", "b", "c"):
        lines.add(key, G, Line.CHANGED)
    assert take(lines, most=2, thread=1) == ["a", "b"]
    assert lines.continuing(1, ["a", "b"]) == [], "they get no more time for that"
    assert not lines.returned(1, "a")
    assert not lines.returned(2, "b")
    assert take(lines, thread=2) is None
    assert lines.returned(1, "b")
    assert not lines.returned(1, "b")
    assert take(lines, thread=2) == ["c"]


def test_only_one_thread_is_left_to_others_by_both_kinds() -> None:
    lines = ReadyLines(2)
    lines.took("other", LONG)
    lines.add("large", G, Line.CONTINUING)
    lines.add("slow", OTHER, Line.CHANGED)
    assert take(lines, thread=1) == ["large"]
    assert take(lines, thread=2) is None
    assert lines.returned(1, "large")
    assert take(lines, thread=2) == ["slow"]
