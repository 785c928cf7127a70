"""How far the training of jobs is, in the terminal view."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("textual")
from dljob.logs import progress as progress_
from dljob.tui import job as job_
from dljob.tui.app import JobsApp
from dljob.tui.board import SHOWN
from dljob.tui.job import JobScreen
from dljob.view import view

from .conftest import PTJS, Cluster
from .test_progress import RANKS, SLOWEST, running
from .test_tui import drive, names, quick, rows, status, text, until

__all__ = ("quick",)
PLACE = SHOWN.index("PROGRESS")


def test_the_table_and_the_page_of_a_job(cluster: Cluster) -> None:
    made = cluster.job("a")
    cluster.job("b", status=running(progressPercentage=7))

    async def steps(app: JobsApp, pilot: Any) -> None:
        await until(pilot, lambda: names(app) == ["a", "b"])
        assert [row[PLACE] for row in rows(app)] == ["", "7% ~13m"]
        cluster.fake.store("MODIFIED", PTJS, {**made, "status": {**running(), "rankStatus": RANKS}})
        await until(pilot, lambda: [row[PLACE] for row in rows(app)] == ["45% ~13m", "7% ~13m"])
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, JobScreen))
        await until(pilot, lambda: "Progress:   45%, 1" in text(app.screen, "summary"))
        assert f"; loss 0.2347, eval_accuracy 0.91; {SLOWEST}" in text(app.screen, "summary")

    drive(cluster, steps)


def test_it_sorts(cluster: Cluster) -> None:
    for name, percent in (("a", 45), ("b", 7), ("c", 100)):
        cluster.job(name, status=running(progressPercentage=percent))

    async def steps(app: JobsApp, pilot: Any) -> None:
        await until(pilot, lambda: len(names(app)) == 3)
        for _ in SHOWN:
            if "sorted by progress" not in status(app):
                await pilot.press("s")
        assert names(app) == ["b", "a", "c"]

    drive(cluster, steps)


def test_a_pattern_shows_it(cluster: Cluster) -> None:
    pytest.importorskip("re2")
    made = cluster.job("a", metadata={"annotations": {progress_.ANNOTATION: r"(?P<percent>\d+)%"}})
    cluster.worker(made, 0).write(1, "45%")
    page = job_.read_page(cluster.client(), view(made), why=False)
    assert "Progress:   45%, by the log of a-worker-0" in page.summary
