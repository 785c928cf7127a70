"""The comparison of the first jobs with the last ones, and the document about it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from bench import plots
from devtools.load.resources import ProcessUse, Use
from devtools.soak import report
from devtools.soak.mix import Life
from devtools.soak.progress import Done
from devtools.soak.samples import AGED, Row, Sample, aged_row, alone_row, rows, sample, series, window

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


def test_jobs_that_ran_alone_are_compared_with_the_first_and_with_those_of_a_new_process() -> None:
    first, last, new = (
        [Done(n, Life.SUCCESS, seconds * factor, 1.0) for n, factor in enumerate((1, 1, 9))] for seconds in (1, 3, 2)
    )
    assert (alone_row(first, last).first, alone_row(first, last).last) == (1, 3)
    assert (aged_row(new, last).first, aged_row(new, last).last) == (2, 3)


def test_nothing_that_stays_nothing_has_not_grown() -> None:
    assert Row("queue", 0, 0).ratio == 1.0
    assert Row("queue", 0, 3).ratio == math.inf


def test_a_window_without_a_sample_is_an_error() -> None:
    with pytest.raises(ValueError, match="sample"):
        rows(SAMPLES[:1], DONE)


GROWN = [
    Row("threads", 10, 11),
    Row("descriptors", 10, 10.4),
    Row("jobs in the queue", 1, 9),
    Row("first pod, p50", 1, 1.06, "s"),
    Row("Succeeded, p50", 1, 1.04, "s"),
    Row("first pod, p99", 1, 1.6, "s"),
    Row("Succeeded, p99", 1, 1.4, "s"),
    Row(AGED, 4, 4.3, "s"),
]
LATENCIES = ["first pod, p50", "first pod, p99", AGED]


@pytest.mark.parametrize(
    ("load", "slower"),
    [((4, 4), LATENCIES), ((4, 6), LATENCIES), ((4, 6.1), []), ((6.1, 4), []), (None, [])],
    ids=["same", "a little busier", "busier at the end", "busier at first", "not recorded"],
)
def test_latencies_may_grow_only_where_the_machine_is_busier(
    load: tuple[float, float] | None, slower: list[str]
) -> None:
    found = [*GROWN, Row("load average", *load)] if load else GROWN
    assert report.grown(found) == ["threads", *slower]
    assert ("not comparable" in report.comparison(found)) is not bool(slower)


def test_the_document_has_every_row() -> None:
    summary = {
        "jobs": 4000, "seconds": 400.0, "rate": 10.0, "in_flight": 40, "lives": {"success": 4000}, "wrong": [],
        "problems": [], "stopped": "interrupted",
        "logged": [],
    }  # fmt: skip
    text = report.document(rows(SAMPLES, DONE), summary, {"machine": "two cores", "peers": "none"})
    assert "| memory of all processes (PSS) | 210.0 MiB | 231.0 MiB | 1.10 |" in text
    assert "| first pod, p50 | 0.100 s | 0.200 s | 2.00 |" in text
    assert "4,000 jobs" in text and "two cores" in text and "peers" not in text
    assert "from job 1,000 to job 2,000" in text
    assert "- stopped early: interrupted" in text
    assert "| load average | 3 | 3 | 1.00 |" in text and "load average was 3.00 after the first jobs" in text
    busy = [*SAMPLES[:-2], one(3200, 231, 40.0), one(4000, 231, 40.0)]
    text = report.document(rows(busy, DONE), summary, {})
    assert "**the latencies are not comparable**: the load average was 3.00 after the first jobs and 40.00" in text


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
