"""The terminal view, driven by keys, at an API server over HTTP."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("textual")
from dljob.client import Change
from dljob.kinds import Resource
from dljob.matching import matches
from dljob.tui import app as app_
from dljob.tui import feed as feed_
from dljob.tui import job as job_
from dljob.tui.app import JobsApp
from dljob.tui.board import SHOWN, Board
from dljob.tui.confirm import Confirm
from dljob.tui.feed import Feed
from dljob.tui.job import JobScreen
from dljob.tui.table import Table
from dljob.view import view
from support import pictures
from support.polling import until as poll
from textual.widgets import Input, Log, Static

from .conftest import Cluster

NAME, STATE = SHOWN.index("NAME"), SHOWN.index("STATE")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (app_, job_):
        monkeypatch.setattr(module, "TICK", 0.02)
    monkeypatch.setattr(job_, "PERIOD", 0.1)


def drive(
    cluster: Cluster, steps: Callable[[JobsApp, Any], Awaitable[None]], size: tuple[int, int] = (160, 40)
) -> None:
    client = cluster.client()

    async def run() -> None:
        app = JobsApp(client, lambda stop: client.watch(all_namespaces=True, stop=stop))
        async with app.run_test(size=size) as pilot:
            await steps(app, pilot)

    asyncio.run(run())


async def until(pilot: Any, is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline, "it does not come to be so"
        await pilot.pause(0.02)


def rows(app: JobsApp) -> list[list[str]]:
    return [list(row.cells) for row in app.query_one(Table).rows]


def names(app: JobsApp) -> list[str]:
    return [row[NAME].partition("/")[2] for row in rows(app)]


def text(screen: Any, tab: str) -> str:
    return "\n".join(screen.query_one(f"#{tab}-text", Log).lines)


def status(app: JobsApp) -> str:
    return str(app.query_one("#status", Static).render())


def test_a_picture_of_it(cluster: Cluster, tmp_path: Path) -> None:
    """It is docs/tui.svg; an SVG of Textual names fonts at another host, which no document should ask."""
    for name, minutes, gpus, state, user in (
        ("digits", 95, 8, "Running", "research"),
        ("faces", 41, 16, "Running", "research"),
        ("letters", 12, 4, "Created", "nightly"),
        ("voices", 300, 0, "Succeeded", "nightly"),
        ("vowels", 70, 2, "Suspended", "research"),
        ("words", 22, 2, "Failed", "nightly"),
    ):
        team = "speech" if name[0] in "lvw" else "vision"
        begun = (datetime.now(UTC) - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
        containers = [{"name": "m", "resources": {"limits": {"nvidia.com/gpu": str(gpus // 2)}}}]
        replicas = {"Worker": {"replicas": 2, "template": {"spec": {"containers": containers}}}}
        metadata = {
            "namespace": team, "uid": name, "creationTimestamp": begun, "labels": {"dljob.operator/user": user},
        }  # fmt: skip
        job = cluster.job(
            name,
            metadata=metadata,
            spec={"pytorchReplicaSpecs": replicas, "runPolicy": {"suspend": state == "Suspended"}},
        )
        if state not in ("Created", "Suspended"):
            condition = {"type": state, "status": "True", "reason": f"PyTorchJob{state}", "lastTransitionTime": begun}
            counts = {"Worker": {"active": 2}} if state == "Running" else {}
            made = {"conditions": [condition], "startTime": begun, "replicaStatuses": counts}
            cluster.fake.store("MODIFIED", (team, "pytorchjobs"), {**job, "status": made})

    async def steps(app: JobsApp, pilot: Any) -> None:
        await until(pilot, lambda: len(names(app)) == 6 and "2 running" in status(app))
        await pilot.press("down")
        await pilot.pause()
        shown = re.sub(r"@font-face \{.*?\}", "", app.export_screenshot(title="kubectl dljob tui"), flags=re.DOTALL)
        assert "letters" in shown.replace("&#160;", " ")
        assert not re.findall(r"(?:href=|url\()\W*http[^)]*", shown)
        (pictures.folder(tmp_path) / "tui.svg").write_text(re.sub(r"[ \t]+$", "", shown, flags=re.MULTILINE))

    drive(cluster, steps, (130, 14))


def test_jobs_come_change_and_go(cluster: Cluster) -> None:
    first = cluster.job("b")
    cluster.job("a", "tfjobs")

    async def steps(app: JobsApp, pilot: Any) -> None:
        await until(pilot, lambda: names(app) == ["a", "b"])
        cluster.job("aa")
        cluster.end(first)
        await until(pilot, lambda: names(app) == ["a", "aa", "b"] and rows(app)[2][STATE] == "Succeeded")
        cluster.client().delete("aa")
        await until(pilot, lambda: names(app) == ["a", "b"])
        assert status(app).startswith("2 of 2 jobs, 0 running; sorted by namespace, ascending")

    drive(cluster, steps)


def test_filter_and_sort(cluster: Cluster) -> None:
    for name in ("digits-1", "digits-2", "other"):
        cluster.job(name)

    async def steps(app: JobsApp, pilot: Any) -> None:
        await until(pilot, lambda: len(names(app)) == 3)
        await pilot.press("s", "S")
        await until(pilot, lambda: names(app) == ["other", "digits-2", "digits-1"])
        await pilot.press("slash", *"name:digits", "enter")
        await until(pilot, lambda: names(app) == ["digits-2", "digits-1"])
        cluster.job("digits-3")
        cluster.job("else")
        await until(pilot, lambda: names(app) == ["digits-3", "digits-2", "digits-1"])
        assert status(app).startswith("3 of 5 jobs")
        await pilot.press("escape")
        await until(pilot, lambda: len(names(app)) == 5)
        assert not app.query_one("#filter", Input).value

    drive(cluster, steps)


def test_the_cursor_stays_at_its_job(cluster: Cluster) -> None:
    for name in ("b", "c"):
        cluster.job(name)

    async def steps(app: JobsApp, pilot: Any) -> None:
        await until(pilot, lambda: names(app) == ["b", "c"])
        await pilot.press("down")
        assert app.selected and app.selected.name == "c"
        cluster.job("a")
        await until(pilot, lambda: names(app) == ["a", "b", "c"])
        assert app.selected and app.selected.name == "c"

    drive(cluster, steps)


def test_the_page_of_a_job(cluster: Cluster) -> None:
    job = cluster.job("a")
    log = cluster.worker(job, 0)
    log.write(1, "loss 3", "\x1b[2Jloss 2", "accuracy 1")

    async def steps(app: JobsApp, pilot: Any) -> None:
        await until(pilot, lambda: names(app) == ["a"])
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, JobScreen))
        await until(pilot, lambda: "a-worker-0" in text(app.screen, "summary"))
        assert "There are no Events" in text(app.screen, "events")
        assert not text(app.screen, "why")
        await pilot.press("2")
        await until(pilot, lambda: "No operator has taken the job" in text(app.screen, "why"))
        await pilot.press("4")
        await until(pilot, lambda: "worker-0 | accuracy 1" in text(app.screen, "logs"))
        assert "worker-0 | \\x1b[2Jloss 2" in text(app.screen, "logs") or "| loss 2" in text(app.screen, "logs")
        await pilot.press("slash", *"accuracy", "enter")
        await until(pilot, lambda: "loss" not in text(app.screen, "logs"))
        log.write(2, "accuracy 4", "loss 5")
        await until(pilot, lambda: "accuracy 4" in text(app.screen, "logs"))
        assert "loss" not in text(app.screen, "logs")
        await pilot.press("slash", "escape")
        await until(pilot, lambda: "loss 5" in text(app.screen, "logs"))
        await pilot.press("slash", "(", "enter")
        await until(pilot, lambda: "no regular expression" in str(app.screen.query_one("#title", Static).render()))
        await pilot.press("escape", "escape")
        await until(pilot, lambda: not isinstance(app.screen, JobScreen))

    drive(cluster, steps)


def test_the_page_reads_the_pods_and_the_events_once(cluster: Cluster) -> None:
    job = cluster.job("a")
    cluster.requests.clear()
    page = job_.read_page(cluster.client(), view(job), why=True)
    assert page.why and page.summary and page.events
    plurals = [one.path.rpartition("/")[2] for one in cluster.requests]
    assert (plurals.count("pods"), plurals.count("events")) == (2, 1)  # pods: by the labels of either operator


def test_actions_ask_first(cluster: Cluster) -> None:
    cluster.job("a")

    def writes() -> list[str]:
        return [one.method for one in cluster.requests if one.method != "GET"]

    async def steps(app: JobsApp, pilot: Any) -> None:
        await until(pilot, lambda: names(app) == ["a"])
        await pilot.press("d")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("enter")  # the focus is on no
        await until(pilot, lambda: not isinstance(app.screen, Confirm))
        assert writes() == []
        await pilot.press("p", "y")
        await until(pilot, lambda: rows(app)[0][STATE] == "Suspended")
        await pilot.press("p", "y")
        await until(pilot, lambda: rows(app)[0][STATE] != "Suspended")
        assert writes() == ["PATCH", "PATCH"]
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, JobScreen))
        await pilot.press("d", "y")  # a key of the list, on another page
        await pilot.press("escape")
        await pilot.press("d", "y")
        await until(pilot, lambda: names(app) == [])
        assert writes() == ["PATCH", "PATCH", "DELETE"]

    drive(cluster, steps)


def test_what_is_refused_is_said(cluster: Cluster) -> None:
    job = cluster.job("a")
    cluster.denied = {"DELETE pytorchjobs"}

    async def steps(app: JobsApp, pilot: Any) -> None:
        await until(pilot, lambda: names(app) == ["a"])
        await pilot.press("d", "y")
        await until(pilot, lambda: "cannot pytorchjobs" in status(app))
        cluster.end(job)
        await until(pilot, lambda: rows(app)[0][STATE] == "Succeeded")
        await pilot.press("p")
        await until(pilot, lambda: "has ended (Succeeded)" in status(app))

    drive(cluster, steps)


def test_a_cluster_that_does_not_answer(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dljob.tui.feed.AGAIN_SECONDS", 0.05)
    cluster.job("a")
    cluster.status = 503

    async def steps(app: JobsApp, pilot: Any) -> None:
        await until(pilot, lambda: "because" in status(app))
        cluster.status = 0
        await until(pilot, lambda: names(app) == ["a"] and status(app).startswith("1 of 1"))

    drive(cluster, steps)


# --- pure


def resource(**more: Any) -> Resource:
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": {}, **more}


def change(made: Resource, type_: str = "ADDED") -> Change:
    return Change(type_, view(made), made)


@pytest.mark.parametrize(
    ("words", "is_shown"),
    [
        ("", True),
        ("digits", True),
        ("DIGITS team", True),
        ("digits other", False),
        ("ns:team", True),
        ("ns:digits", False),
        ("name:digits", True),
        ("unknown:digits", False),
        ("state:created", True),
    ],
)
def test_matches(words: str, is_shown: bool) -> None:
    made = resource(metadata={"name": "digits", "namespace": "team", "uid": "u"})
    assert matches(view(made), words) is is_shown


def test_a_feed_survives_what_it_does_not_expect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_, "AGAIN_SECONDS", 0.01)
    begun: list[int] = []
    errors: list[str] = []

    def begin(stop: Callable[[], bool]) -> Iterator[int]:
        begun.append(1)
        if len(begun) > 1:
            errors.append(feed.error)
            while not stop():
                yield 7
        raise TypeError

    feed = Feed(begin, repeat=True)
    poll(feed.take)
    feed.stop()
    assert errors == ["This cannot be read at the moment (TypeError)."]


def test_2000_jobs_are_applied_and_sorted_without_a_visible_pause() -> None:
    board = Board()
    changes = [
        change(resource(metadata={"name": f"job-{number}", "namespace": "team", "uid": str(number)}))
        for number in range(2000)
    ]
    assert len(board.apply(changes)) == len(board) == 2000
    assert board.uids[:2] == ["0", "1"]
    board.apply([change(changes[0].object, "DELETED")])
    assert not board.shows("0") and board.shows("1") and board.job("0") is None
    assert sorted(board.uids, key=board.place)[:3] == ["1", "10", "100"]
