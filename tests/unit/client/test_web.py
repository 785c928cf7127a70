"""The web page: what it shows, to whom, and what it does, at an API server over HTTP."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("httpx2")
import httpx2 as httpx
import uvicorn
from dljob import cli, matching, web
from dljob.commands import ui
from dljob.matching import matches
from dljob.output import COLUMNS
from dljob.view import JobView, view
from dljob.web import app as app_
from dljob.web import chart, connection, forms, live, serve
from dljob.web.guard import HEADERS, Keys
from dljob.web.opening import opened
from starlette.requests import Request
from starlette.testclient import TestClient
from support.page_thread import page_thread
from support.polling import until
from support.scripted_server import Exchange

from .conftest import Cluster

HOST = "127.0.0.1:8080"
COOKIE = "dljob-8080"
STATIC = Path(web.__file__).parent / "static"


class Page:
    """A browser that was given the address."""

    def __init__(self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(live, "AGAIN_SECONDS", 0.05)
        monkeypatch.setattr(app_, "_LOOK", 0.01)
        client = cluster.client()
        self.keys = Keys()
        self.live = live.of_user(client)
        self.browser = TestClient(
            app_.create(client, self.live, self.keys, [HOST]), base_url=f"http://{HOST}", follow_redirects=False
        )

    def enter(self) -> Page:
        assert self.browser.get(f"/login?token={self.keys.token}").status_code == 303
        return self

    def text(self, path: str, status: int = 200) -> str:
        response = self.browser.get(path)
        assert response.status_code == status, response.text
        return response.text

    def wait(self, jobs: int) -> Page:
        until(lambda: len(self.live.views()) == jobs)
        return self


@pytest.fixture
def page(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    made = Page(cluster, monkeypatch)
    yield made
    made.live.close()


JOB = "/jobs/team/pytorchjobs.kubeflow.org/a"
PATHS = (
    "/",
    JOB,
    f"{JOB}/logs",
    f"{JOB}/delete",
    f"{JOB}/live",
    f"{JOB}/logs/live",
    "/live",
    "/static/live.js",
    "/none",
)

# --- who may see it


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("cookie", ["", "wrong", "\u00e4".encode().decode("latin-1")])
def test_nothing_is_shown_without_the_cookie(cluster: Cluster, page: Page, path: str, cookie: str) -> None:
    cluster.job("a")
    page.wait(1)
    headers = {"Cookie": f"{COOKIE}={cookie}".encode("latin-1")} if cookie else {}
    response = page.browser.get(path, headers=headers)  # type: ignore[arg-type]
    assert response.status_code == 401
    assert "team" not in response.text
    assert page.browser.post(path).status_code == 401


def test_the_address_is_good_once(page: Page) -> None:
    assert page.browser.get("/login?token=wrong").status_code == 403
    assert page.browser.get("/login").status_code == 403
    response = page.browser.get(f"/login?token={page.keys.token}")
    assert (response.status_code, response.headers["location"]) == (303, "/")
    cookie = response.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}=") and "HttpOnly" in cookie and "SameSite=lax" in cookie
    assert page.keys.token not in cookie
    assert page.browser.get(f"/login?token={page.keys.token}").status_code == 403
    assert page.text("/")


def test_two_pages_of_one_browser_have_a_cookie_each(cluster: Cluster, page: Page) -> None:
    """Browsers send a cookie to all ports."""
    other = Keys()
    host = "127.0.0.1:8081"
    second = TestClient(
        app_.create(cluster.client(), page.live, other, [host]), base_url=f"http://{host}", follow_redirects=False
    )
    second.cookies = page.enter().browser.cookies
    assert second.get(f"/login?token={other.token}").status_code == 303
    page.browser.cookies = second.cookies
    assert [one.get("/").status_code for one in (page.browser, second)] == [200, 200]


def test_the_browsers_command_line_has_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """All users of the machine can read it."""
    given: list[str] = []
    monkeypatch.setattr(webbrowser, "open", given.append)
    address = f"http://{HOST}/login?token=secret&more"
    with opened(address):
        assert given[0].startswith("file:///") and "secret" not in given[0]
        file = Path(unquote(urlsplit(given[0]).path))
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        assert 'content="0;url=http://127.0.0.1:8080/login?token=secret&amp;more"' in file.read_text()
    assert not file.parent.exists()
    with pytest.raises(SystemExit), opened(address):
        signal.raise_signal(signal.SIGTERM)
    assert not Path(unquote(urlsplit(given[1]).path)).parent.exists()


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "127.0.0.1", "127.0.0.1:80", "localhost:8080.evil"]
)
def test_another_name_for_this_machine_is_refused(page: Page, host: str) -> None:
    page.enter()
    assert page.browser.get("/", headers={"Host": host}).status_code == 421
    assert page.browser.get(f"/login?token={page.keys.token}", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("path", PATHS[:4])
def test_every_answer_has_the_headers(cluster: Cluster, page: Page, path: str) -> None:
    cluster.job("a")
    for response in (page.browser.get(path), page.enter().browser.get(path)):
        for name, value in HEADERS.items():
            assert response.headers[name] == value
    assert "unsafe" not in HEADERS["Content-Security-Policy"]
    assert HEADERS["Referrer-Policy"] != "no-referrer", "browsers would send the page's own forms with another origin"


def test_the_pages_hold_nothing_that_the_policy_forbids(cluster: Cluster, page: Page) -> None:
    job = cluster.job("a")
    cluster.worker(job, 0).write(1, "x")
    page.wait(1).enter()
    for path in (*PATHS[:4], "/none"):
        text = page.browser.get(path).text
        assert not re.search(r"<script(?![^>]* src=)|<style|\bstyle=|\bon\w+=|javascript:", text), path
        assert not re.search(r"(?:src|href|action)=\"(?![/#])", text), f"{path}: an address of another site"
    assert "innerHTML" not in (STATIC / "live.js").read_text()


# --- what it shows


def test_the_overview(cluster: Cluster, page: Page) -> None:
    gpu = {"requests": {"nvidia.com/gpu": "4"}}
    template = {"spec": {"containers": [{"name": "m", "resources": gpu}]}}
    cluster.job("b", spec={"pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": template}}})
    cluster.job("a", "tfjobs", metadata={"namespace": "other", "labels": {"dljob.operator/user": "<b>ada</b>"}})
    page.wait(2).enter()
    text = page.text("/")
    assert '<a href="/jobs/team/pytorchjobs.kubeflow.org/b">b</a>' in text
    assert "&lt;b&gt;ada&lt;/b&gt;" in text and "<b>ada" not in text
    assert re.search(r'<th scope="row">team</th><td>8</td><td>1</td>', text), "its GPUs"
    assert "2 jobs" in text
    assert 'href="/jobs/team' not in page.text("/?q=ns:other")
    order = re.findall(r'<a href="/jobs/[^"]+">(\w+)</a>', page.text("/?sort=-name"))
    assert order == ["b", "a"]
    assert 'href="/?sort=name"' in page.text("/?sort=-name"), "the other way round"


def test_one_namespace(cluster: Cluster, page: Page) -> None:
    cluster.job("a")
    cluster.job("b", metadata={"namespace": "other"})
    page.wait(2).enter()
    text = page.text("/?namespace=team")
    assert "Of the namespace team." in text and "1 job<" in text
    assert JOB in text and 'href="/jobs/other' not in text
    assert "2 jobs<" in page.text("/")


def test_2000_jobs(cluster: Cluster, page: Page) -> None:
    for number in range(2000):
        cluster.job(f"job-{number:04}")
    page.wait(2000).enter()
    first = page.text("/")
    assert len(first.encode()) < 300_000
    assert "page 1 of 20" in first and 'rel="next" href="/?page=2"' in first and 'rel="prev"' not in first
    last = page.text("/?q=job&page=20")
    assert 'rel="prev" href="/?q=job&amp;page=19"' in last and "job-1999" in last
    for odd in ("0", "-1", "99", "x", "\u0663", "9" * 100):
        assert "job-0000" in page.text(f"/?page={odd}") or "job-1999" in page.text(f"/?page={odd}")
    lists = [one for one in cluster.requests if one.path.endswith("jobs") and not one.query.get("watch")]
    assert len(lists) < 100, "the pages make no list of their own"


def test_a_job(cluster: Cluster, page: Page) -> None:
    job = cluster.job("a", metadata={"managedFields": [{"manager": "kubectl"}], "annotations": {"x": "</pre><script>"}})
    cluster.worker(job, 0)
    event = {"involvedObject": {"uid": "uid-of-a", "kind": "PyTorchJob", "name": "a"}, "metadata": {"name": "e"}}
    cluster.fake.add(("team", "events"), {**event, "reason": "Odd", "message": "<i>\x1b[2J", "type": "Warning"})
    page.wait(1).enter()
    text = page.text(JOB)
    assert "a-worker-0" in text and "node-1" in text
    assert "No operator has taken the job" in text
    assert "&lt;i&gt;\\x1b[2J" in text
    assert "managedFields" not in text and "&lt;/pre&gt;&lt;script&gt;" in text
    assert f'href="{JOB}/suspend"' in text and f'href="{JOB}/resume"' not in text
    cluster.end(job)
    assert f'href="{JOB}/suspend"' not in page.text(JOB)


def test_the_page_of_a_job_reads_nothing_twice(cluster: Cluster, page: Page) -> None:
    job = cluster.job("a")
    page.wait(1).enter()

    def asked() -> list[str]:
        cluster.requests.clear()
        page.text(JOB)
        found = [f"{one.path}?{sorted(one.query.items())}" for one in cluster.requests if not _is_live(one)]
        assert len(found) == len(set(found)), found
        return [one.partition("?")[0].rpartition("/")[2] for one in found]

    assert "nodes" in asked(), "it has no pods: all around it is read"
    for index in range(2):
        ready = [{"type": "Ready", "status": "True"}]
        cluster.pod(job, f"a-worker-{index}", conditions=ready, containerStatuses=[{"state": {"running": {}}}])
    assert asked() == ["a", "pods", "pods", "events", "services", "services"]
    cluster.denied = {"GET pods", "GET events"}
    text = page.text(JOB)
    assert "You may not list pods in the namespace team." in text
    assert "list events, list pods" in text


def _is_live(exchange: Exchange) -> bool:
    """Whether it is of the watch of all jobs, which has nothing to do with a page."""
    return bool(exchange.query.get("watch")) or exchange.path.endswith("jobs")


def test_the_logs(cluster: Cluster, page: Page) -> None:
    job = cluster.job("a")
    cluster.worker(job, 0).write(1, "loss 3 <script>", "\x1b[31mACCURACY 1")
    page.wait(1).enter()
    text = page.text(f"{JOB}/logs")
    assert "<b>worker-0</b> loss 3 &lt;script&gt;" in text and "ACCURACY 1" in text and "\x1b" not in text
    found = page.text(f"{JOB}/logs?q=accuracy")
    assert "ACCURACY 1" in found and "loss" not in found.partition("<pre")[2]
    cluster.job("b")
    assert "has no pods: it is Created" in page.text("/jobs/team/pytorchjobs.kubeflow.org/b/logs")


@pytest.mark.parametrize("path", [f"{JOB}/", "/live/", "/static"])
def test_no_redirect_for_a_slash(cluster: Cluster, page: Page, path: str) -> None:
    """Its address would be that of plain HTTP, whatever the browser used."""
    cluster.job("a")
    response = page.enter().browser.get(path)
    assert response.status_code == 404 and "location" not in response.headers


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/jobs/team/pytorchjobs.kubeflow.org/none", 404, "There is no job none"),
        ("/jobs/team/nonsense/a", 502, "nonsense is no kind"),
        (f"{JOB}/explode", 404, "There is no page explode"),
        ("/jobs/team/pytorchjobs.kubeflow.org/%2e%2e", 502, "no name of a Kubernetes object"),
        ("/jobs/%2e%2e/pytorchjobs.kubeflow.org/a", 502, "no name of a Kubernetes object"),
        ("/jobs/team/pytorchjobs.kubeflow.org/a%2f..%2fb", 404, ""),
    ],
)
def test_what_does_not_exist(cluster: Cluster, page: Page, path: str, status: int, said: str) -> None:
    cluster.job("a")
    page.wait(1).enter()
    assert said in page.text(path, status)


def test_a_cluster_that_does_not_answer(cluster: Cluster, page: Page) -> None:
    cluster.job("a")
    page.wait(1).enter()
    cluster.status = 503
    assert "because" in page.text(JOB, 503)
    cluster.status = 0
    cluster.denied = {"GET pods", "GET events"}
    text = page.text(JOB)
    assert "You may not list pods in the namespace team." in text
    assert "Some causes may stay hidden" in text


# --- what it does


def writes(cluster: Cluster) -> list[str]:
    return [one.method for one in cluster.requests if one.method != "GET"]


def test_an_action_asks_first(cluster: Cluster, page: Page) -> None:
    cluster.job("a")
    page.wait(1).enter()
    text = page.text(f"{JOB}/suspend")
    assert "Suspend a?" in text and writes(cluster) == []
    (key,) = re.findall(r'name="key" value="([^"]+)"', text)
    response = page.browser.post(f"{JOB}/suspend", data={"key": key}, headers={"Origin": f"http://{HOST}"})
    assert (response.status_code, response.headers["location"]) == (303, JOB)
    assert writes(cluster) == ["PATCH"]
    assert "Suspended" in page.text(JOB)
    assert page.browser.post(f"{JOB}/delete", data={"key": key}).headers["location"] == "/"
    until(lambda: page.live.views() == [])


@pytest.mark.parametrize(
    ("data", "headers"),
    [
        ({}, {}),
        ({"key": "wrong"}, {}),
        ({"key": "x" * 20_000}, {}),
        ({"key": True}, {"Origin": "http://evil.example"}),
        ({"key": True}, {"Origin": "null"}),
        ({"key": True}, {"Sec-Fetch-Site": "cross-site"}),
        ({"key": True}, {"Sec-Fetch-Site": "same-site"}),
    ],
)
def test_another_site_changes_nothing(cluster: Cluster, page: Page, data: Any, headers: dict[str, str]) -> None:
    cluster.job("a")
    page.wait(1).enter()
    given = {name: page.keys.form if value is True else value for name, value in data.items()}
    assert page.browser.post(f"{JOB}/delete", data=given, headers=headers).status_code == 403
    assert page.browser.get(f"{JOB}/delete").status_code == 200, "a link changes nothing"
    assert writes(cluster) == []


def test_a_refused_action_is_a_sentence(cluster: Cluster, page: Page) -> None:
    job = cluster.job("a")
    cluster.end(job)
    page.wait(1).enter()
    response = page.browser.post(f"{JOB}/suspend", data={"key": page.keys.form})
    assert response.status_code == 502 and "restart it instead" in response.text


# --- live: with a real server, since a test client reads endless answers to their end


@contextmanager
def served(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[httpx.Client, list[str]]]:
    said: list[str] = []
    monkeypatch.setattr(webbrowser, "open", said.append)
    client = cluster.client()
    with page_thread(monkeypatch, lambda: serve.serve(client, 0, browser=True, say=said.append)):
        address = said[0].split()[1]
        assert said[1].startswith("file:///")
        with httpx.Client(base_url=address.partition("/login")[0], follow_redirects=True, timeout=20) as browser:
            assert browser.get(address).status_code == 200
            yield browser, said


def test_pages_hear_of_changes(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    job = cluster.job("a")
    log = cluster.worker(job, 0)
    log.write(1, "before")
    with served(cluster, monkeypatch) as (browser, said):
        assert said[0].startswith("Open http://127.0.0.1:")
        until(lambda: JOB in browser.get("/").text)
        with browser.stream("GET", "/live") as events, browser.stream("GET", f"{JOB}/live") as of_job:
            lines, of_one = events.iter_lines(), of_job.iter_lines()
            first, first_of_job = next(lines), next(of_one)
            cluster.job("b")
            assert next(line for line in lines if line.startswith("data")) != first
            cluster.end(job)
            assert next(line for line in of_one if line.startswith("data")) != first_of_job
        with browser.stream("GET", f"{JOB}/logs/live") as events:
            lines = events.iter_lines()
            assert next(lines) == ": begin"
            until(lambda: log.is_followed)
            log.write(2, "after")
            log.is_open = False
            data = next(line for line in lines if line.startswith("data"))
            assert json.loads(data.removeprefix("data: ")) == {"replica": "worker-0", "text": "after"}


def test_a_client_that_sends_nothing_is_cut_off(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(cluster, monkeypatch) as (browser, _):
        monkeypatch.setattr(connection, "SECONDS", 1.0)
        at = browser.base_url.host, browser.base_url.port
        slow = [socket.create_connection(at, 20) for _ in range(4)]
        slow[1].sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        slow[2].sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        slow[3].sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
        assert [one.recv(12) for one in slow[2:]] == [b"HTTP/1.1 421"] * 2
        slow[2].sendall(b"GET / HTTP/1.1\r\n")  # a second one
        slow[3].sendall(b"k")
        assert not any(b"HTTP/1.1" in _until_the_end(one) for one in slow)
        with browser.stream("GET", "/live") as events:  # what has begun may last
            lines = events.iter_lines()
            next(lines)
            assert _until_the_end(socket.create_connection(at, 20)) == b""
            cluster.job("b")
            assert next(line for line in lines if line.startswith("data"))


def _until_the_end(one: socket.socket) -> bytes:
    with one:
        found = b""
        while data := one.recv(65536):
            found += data
        return found


@pytest.mark.parametrize("parts", [1, 300])
def test_a_client_that_reads_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch, parts: int) -> None:
    monkeypatch.setattr(connection, "SECONDS", 4.0)  # a loaded machine may stop both sides for a second
    large = b"x" * 30_000_000
    size = len(large) // parts

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(large))]})
        for number in range(parts):
            await send({"type": "http.response.body", "body": large[:size], "more_body": number + 1 < parts})

    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(answer, http=connection.Connection, lifespan="off", log_level="warning")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        until(lambda: server.started)
        reader, other = (socket.create_connection(listening.getsockname(), 20) for _ in range(2))
        for one in (reader, other):
            one.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert len(_until_the_end(reader)) > len(large)
        until(lambda: not server.server_state.connections)
        other.close()
        server.should_exit = True
        thread.join(20)


def test_a_form_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "SECONDS", 0.05)
    left: list[Any] = [{"type": "http.request", "body": b"key=", "more_body": True}]

    async def receive() -> Any:
        if not left:
            await asyncio.sleep(20)
        return left.pop(0)

    async def read() -> dict[str, str]:
        return await forms.fields(Request({"type": "http", "method": "POST", "headers": []}, receive))

    assert asyncio.run(read()) == {}
    left += [{"type": "http.request", "body": b"key=a", "more_body": True}, {"type": "http.disconnect"}]
    assert asyncio.run(read()) == {}, "the browser has gone"


def test_a_port_that_is_taken(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.job("a")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert cli.main(["ui", "--no-browser", "--port", str(taken.getsockname()[1])]) == 1
    assert "cannot be used" in capsys.readouterr().err


def test_a_user_of_one_namespace(cluster: Cluster) -> None:
    cluster.job("a")
    assert ui.sees_all(cluster.client())


# --- pure

NOW = datetime(2026, 11, 29, 12, 10, tzinfo=UTC)


def pod(name: str, **more: Any) -> dict[str, Any]:
    labels = {"dljob.operator/replica-type": "worker", "dljob.operator/replica-index": name[-1]}
    created = more.pop("created", "2026-11-29T12:00:00Z")
    return {"metadata": {"name": name, "creationTimestamp": created, "labels": labels}, "status": more}


def state(**given: str) -> list[dict[str, Any]]:
    kind = "terminated" if "finishedAt" in given else "running"
    return [{"state": {kind: given}}]


BOUND = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-29T12:01:00Z"}]


@pytest.mark.parametrize(
    ("status", "bars"),
    [
        ({"phase": "Pending"}, [("waiting", 0, 1000)]),
        ({"phase": "Pending", "conditions": BOUND}, [("waiting", 0, 100), ("starting", 100, 900)]),
        (
            {"phase": "Running", "conditions": BOUND, "containerStatuses": state(startedAt="2026-11-29T12:02:00Z")},
            [("waiting", 0, 100), ("starting", 100, 100), ("running", 200, 800)],
        ),
        (
            {
                "phase": "Failed",
                "conditions": BOUND,
                "containerStatuses": state(startedAt="2026-11-29T12:02:00Z", finishedAt="2026-11-29T12:04:00Z"),
            },
            [("waiting", 0, 250), ("starting", 250, 250), ("failed", 500, 500)],
        ),
        (
            {"containerStatuses": [{}], "conditions": [{"type": "PodScheduled", "status": "True"}]},
            [("waiting", 0, 1000)],
        ),
    ],
)
def test_the_bars_of_a_pod(status: dict[str, Any], bars: list[tuple[str, int, int]]) -> None:
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"creationTimestamp": "2026-11-29T12:00:00Z"},
    }
    (row,), left_out = chart.timeline(job, [pod("a-0", **status)], NOW)
    assert [(bar.kind, bar.start, bar.length) for bar in row.bars] == bars
    assert left_out == 0


def test_only_so_many_pods_are_drawn() -> None:
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"creationTimestamp": "2026-11-29T12:00:00Z"},
    }
    rows, left_out = chart.timeline(job, [pod(f"p{number}-0") for number in range(chart.MOST_ROWS + 3)], NOW)
    assert (len(rows), left_out) == (chart.MOST_ROWS, 3)
    assert chart.timeline({**job, "metadata": {}}, [pod("a-0")], NOW) == ((), 0)


def test_a_filter_costs_little(monkeypatch: pytest.MonkeyPatch) -> None:
    job = view({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "a", "namespace": "team"}})
    asked: list[str] = []

    def counted(name: str) -> Callable[[JobView], str]:
        def column(job: JobView) -> str:
            asked.append(name)
            return COLUMNS[name](job)

        return column

    monkeypatch.setattr(matching, "COLUMNS", {name: counted(name) for name in COLUMNS})
    assert matches(job, "team a pytorch ns:team state:created")
    assert sorted(asked) == sorted(COLUMNS), "each column once"
    assert matches(job, "a " * matching.MOST_WORDS + "none") and matches(job, " " * matching.LONGEST + "none")
    assert not matches(job, "a " * (matching.MOST_WORDS - 1) + "none")
