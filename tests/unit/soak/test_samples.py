"""The comparison of the first jobs with the last ones, and the document about it."""

from __future__ import annotations

import math

import pytest
from devtools.load.resources import ProcessUse, Use
from devtools.soak import report
from devtools.soak.mix import Life
from devtools.soak.progress import Done
from devtools.soak.samples import Row, Sample, rows, sample, series, window

MIB = 2**20


def one(jobs: int, pss: int, descriptors: int = 50) -> Sample:
    return Sample(float(jobs), jobs, pss * MIB, (100 * MIB, 5 * MIB), descriptors, 5, 40, 2)


DONE = [Done(n, Life.SUCCESS if n % 2 else Life.RETRY, 0.1 if n < 2000 else 0.2, 1.0) for n in range(4000)]
SAMPLES = [one(500, 999), one(1000, 200), one(1500, 210), one(1900, 220), one(2500, 1), one(3200, 231), one(4000, 231)]


def by_name() -> dict[str, Row]:
    return {row.name: row for row in rows(SAMPLES, DONE)}


def test_a_sample_is_the_sum_over_the_processes() -> None:
    use = Use((ProcessUse(1, 7, 5, 3, 2), ProcessUse(2, 9, 6, 4, 1)))
    assert sample(1.5, 3, use, 4.0) == Sample(1.5, 3, 11, (7, 9), 7, 2, 3, 4)


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


def test_nothing_that_stays_nothing_has_not_grown() -> None:
    assert Row("queue", 0, 0).ratio == 1.0
    assert Row("queue", 0, 3).ratio == math.inf


def test_a_window_without_a_sample_is_an_error() -> None:
    with pytest.raises(ValueError, match="sample"):
        rows(SAMPLES[:1], DONE)


def test_growth_of_processes_is_reported_and_of_latency_not() -> None:
    found = [
        Row("threads", 10, 11),
        Row("descriptors", 10, 10.4),
        Row("first pod", 1, 2, "s"),
        Row("in the queue", 1, 9),
    ]
    assert report.grown(found) == ["threads"]


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


def test_the_plot_has_a_point_per_sample() -> None:
    data = series(SAMPLES, DONE)
    assert data["jobs"] == [500, 1000, 1500, 1900, 2500, 3200, 4000]
    assert data["pss"][1] == 200
    assert len(data["marks"]) == len(data["first_pod"]) == len(data["ended"]) == 100
    assert data["marks"][-1] == 4000


@pytest.mark.parametrize(("count", "kept"), [(0, 0), (1, 1), (150, 150), (151, 76), (1000, 143)])
def test_a_curve_has_few_points(count: int, kept: int) -> None:
    thin = report.thinned(range(count))
    assert len(thin) == kept
    assert list(thin[:1]) == list(range(count))[:1]
