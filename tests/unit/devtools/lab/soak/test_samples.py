"""The comparison of the first jobs with the last ones, and the document about it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from devtools.lab.bench import plots
from devtools.lab.soak import report
from devtools.lab.soak.mix import Life
from devtools.lab.soak.progress import Done
from devtools.lab.soak.samples import (
    LIMIT,
    TAIL_LIMIT,
    Row,
    Sample,
    alone_row,
    in_turn_rows,
    rows,
    sample,
    series,
    window,
)
from devtools.testbed.usage import ProcessUse, Use

MIB = 2**20


def one(jobs: int, pss: int, load: float = 3.0) -> Sample:
    return Sample(float(jobs), jobs, pss * MIB, (100 * MIB, 5 * MIB), 50, 5, 40, 2, load)


DONE = [Done(n, Life.SUCCESS if n % 2 else Life.RETRY, 0.1 if n < 2000 else 0.2, 1.0) for n in range(4000)]
SAMPLES = [one(500, 999), one(1000, 200), one(1500, 210), one(1900, 220), one(2500, 1), one(3200, 231), one(4000, 231)]


def by_name() -> dict[str, Row]:
    return {row.name: row for row in rows(SAMPLES, DONE)}


def test_a_sample_is_the_sum_over_the_processes() -> None:
    use = Use((ProcessUse(1, 7, 5, 3, 2), ProcessUse(2, 9, 6, 4, 1)))
    assert sample(1.5, 3, use, 4.0, 2.5) == Sample(1.5, 3, 11, (7, 9), 7, 2, 3, 4, 2.5)


@pytest.mark.parametrize(("jobs", "wanted"), [(20_000, 1000), (4000, 1000), (1500, 375), (40, 10), (2, 1)])
def test_a_short_run_has_shorter_windows(jobs: int, wanted: int) -> None:
    assert window(jobs) == wanted


def test_medians_of_both_windows_are_compared() -> None:
    row = by_name()["memory of all processes (PSS)"]
    assert (row.first, row.last) == (210, 231)
    assert row.ratio == pytest.approx(1.1)
    assert by_name()["file descriptors"].ratio == 1.0


def test_latencies_are_those_of_the_jobs_in_the_windows() -> None:
    row = by_name()["first pod, p50"]
    assert (row.first, row.last) == (0.1, 0.2)
    assert by_name()["Succeeded, p99"].ratio == 1.0


def done_in(*seconds: float) -> list[Done]:
    return [Done(n, Life.SUCCESS, one, 2 * one) for n, one in enumerate(seconds)]


LIMITS = {"first pod, p50": LIMIT, "Succeeded, p50": LIMIT, "first pod, p99": TAIL_LIMIT, "Succeeded, p99": TAIL_LIMIT}
ALONE = "first pod of a job alone, p50"


def test_latencies_of_the_windows_have_limits() -> None:
    found = [*by_name().values(), alone_row(done_in(1, 1, 9), done_in(3, 3, 27))]
    assert (found[-1].first, found[-1].last) == (1, 3)
    assert {row.name: row.limit for row in found if row.unit == "s"} == {**LIMITS, ALONE: LIMIT}
    assert {row.name for row in found if row.limit is None} == {"jobs in the queue", "load average"}


def test_those_of_two_processes_in_turn_have_the_same() -> None:
    many = (done_in(*range(1, 101)), done_in(*range(2, 202, 2)))
    found = {row.name: row for row in in_turn_rows(many, (done_in(1, 1, 9), done_in(3, 3, 27)))}
    assert {name: row.limit for name, row in found.items()} == {**LIMITS, ALONE: LIMIT}
    assert {name: row.ratio for name, row in found.items()} == pytest.approx({**dict.fromkeys(LIMITS, 2), ALONE: 3})


def test_the_interval_of_a_ratio_narrows_with_the_number_of_jobs() -> None:
    def width(count: int) -> float:
        many = tuple(done_in(*(1 + n % 20 / 20 for n in range(count))) for _ in range(2))
        row = in_turn_rows(many, many)[0]
        assert row.interval is not None and row.interval[0] <= row.ratio == 1 <= row.interval[1]
        return row.interval[1] - row.interval[0]

    assert width(900) < width(100) / 2


def test_nothing_that_stays_nothing_has_not_grown() -> None:
    assert Row("queue", 0, 0).ratio == 1.0
    assert Row("queue", 0, 3).ratio == math.inf


def test_a_window_without_a_sample_is_an_error() -> None:
    with pytest.raises(ValueError, match="sample"):
        rows(SAMPLES[:1], DONE)


@pytest.mark.parametrize(
    ("row", "grown"),
    [
        (Row("threads", 100, 106), True),
        (Row("threads", 100, 105), False),
        (Row("descriptors", 100, 20), False),
        (Row("descriptors", 0, 1), True),
        (Row("jobs in the queue", 1, 9, limit=None), False),
        (Row("first pod, p99", 1, 1.6, "s", TAIL_LIMIT), True),
        (Row("first pod, p99", 1, 1.4, "s", TAIL_LIMIT), False),
    ],
)
def test_what_has_grown(row: Row, grown: bool) -> None:
    assert row.has_grown is grown


def test_the_document_has_every_row() -> None:
    summary = {
        "jobs": 4000, "seconds": 400.0, "rate": 10.0, "in_flight": 40, "lives": {"success": 4000}, "wrong": [],
        "problems": [], "stopped": "interrupted",
        "logged": [],
    }  # fmt: skip
    in_turn = in_turn_rows((done_in(0.1), done_in(0.11)), (done_in(0.02), done_in(0.02)))
    text = report.document(rows(SAMPLES, DONE), in_turn, summary, {"machine": "two cores"})
    assert "| memory of all processes (PSS) | 210.0 MiB | 231.0 MiB | **1.10** | 1.05 |" in text
    assert "| first pod, p50 | 0.100 s | 0.200 s | **2.00** | 1.05 |" in text
    assert "| first pod, p50 | 0.100 s | 0.110 s | **1.10** (1.10 to 1.10) | 1.05 |" in text
    assert "| first pod, p99 | 0.100 s | 0.110 s | 1.10 (1.10 to 1.10) | 1.50 |" in text
    assert "4,000 jobs" in text and "two cores" in text
    assert "from job 1,000 to job 2,000" in text
    assert "- stopped early: interrupted" in text
    assert "| load average | 3 | 3 | 1.00 |  |" in text
    assert "It stopped before." in report.document(rows(SAMPLES, DONE), [], summary, {})


def test_the_plot_has_a_point_per_sample() -> None:
    data = series(SAMPLES, DONE)
    assert data["jobs"] == [500, 1000, 1500, 1900, 2500, 3200, 4000]
    assert data["pss"][1] == 200
    assert len(data["marks"]) == len(data["first_pod"]) == len(data["ended"]) == 100
    assert data["marks"][-1] == 4000


def test_the_plot_has_processes_and_load(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[plots.Panel] = []
    monkeypatch.setattr(plots, "draw", lambda panels, *_, **__: drawn.extend(panels))
    data = series(SAMPLES, DONE)
    report.draw(data, Path("soak.svg"))
    lines = {line.label: line for panel in drawn for line in panel.lines}
    assert lines["processes"].y == [5] * 7 and lines["load average"].y == [3.0] * 7
    drawn.clear()
    report.draw({name: values for name, values in data.items() if name not in ("processes", "load")}, Path("soak.svg"))
    assert [len(line.x) for panel in drawn for line in panel.lines if line.label in ("processes", "load average")] == [
        0,
        0,
    ]


@pytest.mark.parametrize(("count", "kept"), [(0, 0), (1, 1), (150, 150), (151, 76), (1000, 143)])
def test_a_curve_has_few_points(count: int, kept: int) -> None:
    thin = report.thinned(range(count))
    assert len(thin) == kept
    assert list(thin[:1]) == list(range(count))[:1]
