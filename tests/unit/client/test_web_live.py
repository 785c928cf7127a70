"""The parts of the web page that live on: the jobs, the logs and the script, in bounded memory."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx2")
from dljob.client import Change
from dljob.errors import ConnectionFailed
from dljob.logs import LogLine
from dljob.view import Requests, view
from dljob.web import app as app_
from dljob.web import chart, lines, live
from dljob.web.lines import Last, Line, shown, time_in
from dljob.web.live import LiveJobs
from support.polling import until

from .conftest import PTJS, Cluster
from .test_client import DEEP, Held, refuse_creation
from .test_web import JOB, STATIC, Page, served

SECOND = "2026-11-29T10:00:0{}.00{}000000Z"
"""The time of a line of :meth:`.conftest.Log.write`, by its second and its number."""


@pytest.fixture
def page(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    made = Page(cluster, monkeypatch)
    yield made
    made.live.close()


# --- the jobs


def job(name: str, **more: Any) -> Held:
    metadata = {"name": name, "namespace": "team", "uid": f"uid-of-{name}", "resourceVersion": "7"}
    return Held(apiVersion="kubeflow.org/v1", kind="PyTorchJob", metadata=metadata, spec={}, **more)


def added(made: Held) -> Change:
    return Change("ADDED", view(made), made)


@pytest.fixture
def following(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., LiveJobs]]:
    """Makes LiveJobs, which begin with each of these in turn."""
    monkeypatch.setattr(live, "AGAIN_SECONDS", 0.01)
    made: list[LiveJobs] = []

    def make(*begins: Callable[[], Iterator[Change | None]]) -> LiveJobs:
        left = list(begins)

        def watch(stop: Callable[[], bool]) -> Iterator[Change | None]:
            yield from left.pop(0)()
            until(stop)

        made.append(LiveJobs(watch))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize(
    "error", [TypeError("x"), RecursionError(), KeyError("metadata"), ConnectionFailed("It is so.")]
)
def test_the_jobs_survive_any_error(following: Callable[..., LiveJobs], error: Exception) -> None:
    errors: list[str] = []

    def fails() -> Iterator[Change | None]:
        yield added(job("a"))
        yield added(job("gone"))
        yield None
        raise error

    def goes_on() -> Iterator[Change | None]:
        errors.append(jobs.error)
        yield added(job("a"))
        yield None
        yield added(job("b"))

    jobs = following(fails, goes_on)
    until(lambda: [one.name for one in jobs.views()] == ["a", "b"])
    assert errors == ["It is so." if isinstance(error, ConnectionFailed) else "The jobs cannot be read at the moment."]
    assert jobs.error == ""
    assert [jobs.version_of("team", "pytorchjobs.kubeflow.org", name) for name in ("a", "gone")] == ["7", ""]


def test_the_jobs_are_kept_without_their_objects(following: Callable[..., LiveJobs]) -> None:
    held: list[weakref.ref[Held]] = []

    def begin() -> Iterator[Change | None]:
        made = job("a", status={"conditions": [{"type": "Running", "status": "True"}]})
        held.append(weakref.ref(made))
        yield added(made)
        del made
        yield None

    jobs = following(begin)
    until(jobs.views)
    until(lambda: held[0]() is None, timeout=10)
    assert [one.state for one in jobs.views()] == ["Running"]


def test_an_open_page_says_that_the_jobs_cannot_be_read(cluster: Cluster, page: Page) -> None:
    cluster.job("a")
    page.wait(1).enter()
    page.live.error = "It is so."
    assert "It is so." in page.text("/").partition('<div id="live"')[2]


def test_a_job_that_is_nested_too_deeply(cluster: Cluster, page: Page) -> None:
    """Its own page says so, and the others are shown."""
    cluster.job("a")
    cluster.job("deep", status={"x": "DEEP"})
    respond = cluster.respond

    def responds(exchange: Any) -> None:
        answer = exchange.answer
        exchange.answer = lambda content, status=200: answer(
            content if isinstance(content, bytes) else json.dumps(content).encode().replace(b'"DEEP"', DEEP), status
        )
        respond(exchange)

    cluster.respond = responds  # type: ignore[method-assign]
    other = Page(cluster, pytest.MonkeyPatch())
    try:
        other.wait(1).enter()
        assert JOB in other.text("/") and "deep" not in other.text("/")
        assert "nested too deeply" in other.text(JOB.replace("/a", "/deep"), 502)
    finally:
        other.live.close()


# --- one job


def test_a_lost_job_is_in_the_page(cluster: Cluster, page: Page) -> None:
    cluster.end(cluster.job("a"))
    page.wait(1).enter()
    refuse_creation(cluster)
    response = page.browser.post(f"{JOB}/restart", data={"key": page.keys.form})
    assert response.status_code == 502 and "was deleted, and could not be created again" in response.text
    assert "kind: PyTorchJob" in response.text and "dljob submit -f FILE" in response.text
    assert PTJS not in cluster.fake.objects or "a" not in cluster.fake.objects[PTJS]


@pytest.mark.parametrize(("size", "where"), [(10, "page"), (150_000, "yaml"), (600_000, "kubectl")])
def test_the_yaml_of_a_large_job(cluster: Cluster, page: Page, size: int, where: str) -> None:
    cluster.job("a", metadata={"annotations": {"x": "y" * size}})
    page.wait(1).enter()
    text = page.text(JOB)
    assert ("<summary>YAML</summary>" in text and "kind: PyTorchJob" in text) is (where == "page")
    assert (f'href="{JOB}/yaml"' in text) is (where != "page")
    own = page.text(f"{JOB}/yaml", 502 if where == "kubectl" else 200)
    assert ("kind: PyTorchJob" in own) is (where != "kubectl")
    assert ("kubectl get pytorchjobs.kubeflow.org/a -n team -o yaml prints it" in own) is (where == "kubectl")


def test_a_page_that_is_kept_up_to_date_needs_no_yaml(cluster: Cluster, page: Page) -> None:
    cluster.job("a")
    page.wait(1).enter()
    assert "kind: PyTorchJob" not in page.browser.get(JOB, headers={"X-Live": "1"}).text


def test_namespaces_whose_gpus_sum_to_nothing() -> None:
    seen = view(job("a"))
    jobs = [replace(seen, state="Running", requests=Requests(gpus=gpus)) for gpus in (4, -4)]
    assert [(one.gpus, one.length) for one in chart.shares(jobs)] == [(0, 2)]
    assert chart.shares([]) == []


# --- the logs


def line(text: str, time: str = SECOND.format(1, 0)) -> LogLine:
    return LogLine(time, "worker-0", "a-worker-0", "pytorch", text.encode())


def test_a_line_is_cut_after_what_a_progress_bar_wrote_last() -> None:
    assert shown(line("1%\r" * 5000 + "100%")).text == "100%"
    cut = shown(line("\x00" * 3000)).text
    assert len(cut) == lines.LONGEST and cut.startswith("\\x00") and cut.endswith("\u2026")


def test_only_the_last_lines_are_kept() -> None:
    last = Last()
    for number in range(6000):
        last.add(Line("", "", str(number)))
    assert [one.text for one in last][:: lines.MOST - 1] == ["1000", "5999"]
    for number in range(6000):
        last.add(Line("", "", f"{number:04}" + "x" * 4000))
    kept = [one.text for one in last]
    assert sum(map(len, kept)) <= lines.ROOM < sum(map(len, kept)) + 4004
    assert kept[-1].startswith("5999") and kept[0].startswith(f"{6000 - len(kept):04}")


@pytest.mark.parametrize(
    ("text", "is_time"),
    [
        (SECOND.format(1, 0), True),
        ("2026-11-29T10:00:01Z", True),
        ("2026-11-29T10:00:01.5+01:00", True),
        ("2026-11-29T10:00:01Z\ndata: x", False),
        ("2026-11-29T10:00:01Z\n", False),
        ("\u0662026-11-29T10:00:01Z", False),
        ("now", False),
        ("", False),
    ],
)
def test_what_is_a_time(text: str, is_time: bool) -> None:
    assert time_in(text) == (text if is_time else "")


def test_the_page_of_the_logs_cuts_long_lines(cluster: Cluster, page: Page) -> None:
    made = cluster.job("a")
    cluster.worker(made, 0).write(1, "x" * 10_000, "<after>")
    page.wait(1).enter()
    text = page.text(f"{JOB}/logs")
    assert "x" * (lines.LONGEST - 1) + "\u2026" in text and "x" * lines.LONGEST not in text
    assert f'data-since="{SECOND.format(1, 1)}"' in text and "&lt;after&gt;" in text
    found = page.text(f"{JOB}/logs?q=xxx")
    assert f'data-since="{SECOND.format(1, 1)}"' in found, "what is not shown was read too"


def events(stream: Any) -> Iterator[tuple[str, str, str]]:
    """Name, id and data of each."""
    fields: dict[str, str] = {}
    for text in stream.iter_lines():
        if text and not text.startswith(":"):
            name, _, value = text.partition(": ")
            fields[name] = value
        elif fields:
            yield fields.get("event", ""), fields.get("id", ""), fields.get("data", "")
            fields = {}


def test_no_line_is_lost_between_the_page_and_its_stream(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    made = cluster.job("a")
    log = cluster.worker(made, 0)
    log.write(1, "shown")
    with served(cluster, monkeypatch) as (browser, _):
        until(lambda: JOB in browser.get("/").text)
        (since,) = re.findall(r'data-since="([^"]+)"', browser.get(f"{JOB}/logs").text)
        log.write(1, "between")
        with browser.stream("GET", f"{JOB}/logs/live", params={"since": since}) as stream:
            found = events(stream)
            assert next(found) == ("", SECOND.format(1, 1), '{"replica": "worker-0", "text": "between"}')
            until(lambda: log.is_followed)
            log.write(2, "later")
            _, last, data = next(found)
            assert json.loads(data)["text"] == "later"
        log.write(3, "while the connection was broken")
        headers = {"Last-Event-ID": last}
        with browser.stream("GET", f"{JOB}/logs/live", params={"since": since}, headers=headers) as stream:
            found = events(stream)
            assert json.loads(next(found)[2])["text"] == "while the connection was broken"
            log.is_open = False
            cluster.end(made)
            assert next(found) == ("over", "", "ended")


def test_a_page_without_a_line_shows_the_first_ones(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.worker(cluster.job("a"), 0).write(1, "first")
    with served(cluster, monkeypatch) as (browser, _):
        until(lambda: JOB in browser.get("/").text)
        with browser.stream("GET", f"{JOB}/logs/live?since=") as stream:
            assert json.loads(next(events(stream))[2])["text"] == "first"


def test_a_stream_of_logs_ends_with_a_sentence_whatever_happens(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.job("a")

    def fails(*_: Any) -> Any:
        raise TypeError

    with served(cluster, monkeypatch) as (browser, _):
        until(lambda: JOB in browser.get("/").text)
        monkeypatch.setattr(app_, "shown", fails)
        cluster.worker(cluster.fake.objects[PTJS]["a"], 0).write(1, "first")
        with browser.stream("GET", f"{JOB}/logs/live?since=") as stream:
            assert list(events(stream)) == [
                ("said", "", '"The logs cannot be read at the moment."'),
                ("over", "", ""),
            ]


# --- the script

STOPPED = "This page is no longer kept up to date: reload it."


def run(what: str) -> Any:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no Node.js here")
    program = Path(__file__).with_name("live_page.js")
    done = subprocess.run(
        [node, program, STATIC / "live.js", what], capture_output=True, text=True, check=True, timeout=60
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("what", "asked", "said"),
    [
        ("live_changes", 1, []),
        ("live_refused:404", 1, ["This job is gone."]),
        *((f"live_refused:{status}", 1, [STOPPED]) for status in (401, 403, 429, 502)),
        ("live_over", 1, [STOPPED]),
    ],
)
def test_the_script_reads_a_page_until_it_is_refused(what: str, asked: int, said: list[str]) -> None:
    found = run(what)
    assert (found["asked"], found["said"]) == (asked, said)
    assert found["isClosed"] is bool(said)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("log_line", []),
        ("log_broken", []),
        ("log_closed", [STOPPED]),
        ("log_over", [STOPPED]),
        ("log_over:ended", ["The job has ended, and so has its log."]),
    ],
)
def test_the_script_says_that_a_log_has_stopped(what: str, said: list[str]) -> None:
    found = run(what)
    assert found["address"] == "/logs/live?since=2026-11-29T10%3A00%3A01%2B01%3A00"
    assert found["said"] == said and found["isClosed"] is bool(said)
    assert found["lines"] == (["worker-0", " step\n"] if what == "log_line" else [])
