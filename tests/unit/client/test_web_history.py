"""The pages of the history, on the user's own machine alone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx2")
from dljob.web import app as app_
from dljob.web import history as pages
from dljob.web import live
from dljob.web.guard import Keys
from starlette.testclient import TestClient

from dljob_operator.history.database import Database
from dljob_operator.history.store import Store

from .conftest import Cluster
from .history_jobs import NOW, save

HOST = "127.0.0.1:8080"


def browser_of(cluster: Cluster, url: str) -> Iterator[TestClient]:
    keys, seen = Keys(), live.of_user(cluster.client())
    app = app_.create(cluster.client(), seen, keys, [HOST], url)
    browser = TestClient(app, base_url=f"http://{HOST}", follow_redirects=False)
    browser.get(f"/login?token={keys.token}")
    yield browser
    seen.close()


@pytest.fixture
def browser(cluster: Cluster, url: str) -> Iterator[TestClient]:
    yield from browser_of(cluster, url)


def text(browser: TestClient, path: str, status: int = 200) -> str:
    response = browser.get(path)
    assert response.status_code == status, response.text
    return response.text


def test_the_jobs_that_have_ended(browser: TestClient) -> None:
    found = text(browser, "/history")
    names = ("<td>new</td>", "<td>failed</td>", "<td>elsewhere</td>", "<td>october")
    places = [found.index(name) for name in names]
    assert places == sorted(places)
    assert "bob\\x1b[2J" in found
    assert 'href="https://logs.example.com/a/rather/long/address/of/the/logs?uid=uid-new"' in found
    assert '<a href="/history">History</a>' in text(browser, "/")
    assert "elsewhere" not in text(browser, "/history?namespace=team")
    assert "<td>new</td>" not in text(browser, "/history?state=Failed&user=bob")


def test_the_older_ones_are_on_further_pages(browser: TestClient, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "PAGE", 2)
    path, names = "/history?namespace=team", ""
    for _ in range(2):
        found = text(browser, path)
        names += found
        path = found.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
    assert path == "", "of the namespace's four jobs two were on each page"
    assert [names.count(f"<td>{name}</td>") for name in ("new", "failed", "october", "october-2")] == [1, 1, 1, 1]


def test_the_report_of_a_month(browser: TestClient) -> None:
    found = text(browser, "/history/report?month=2026-10")
    assert found.count('<th scope="row">team</th>') == 2
    assert text(browser, "/history/report?month=2026-10&by=kind").count('<th scope="row">PyTorchJob</th>') == 1
    for wrong in ("month=2026-1", "by=node", "by=,", "month=2026-10&by=uid"):
        assert "Write a month such as 2026-11" in text(browser, f"/history/report?{wrong}", 502)


def test_a_link_that_is_no_address_of_the_web_is_none(browser: TestClient, url: str) -> None:
    from sqlalchemy import text as sql

    from dljob_operator.history.database import connect

    engine = connect(Database(url))
    with engine.begin() as connection:
        connection.execute(sql("UPDATE jobs SET log_link = 'javascript:alert(1)'"))
    engine.dispose()
    assert "javascript" not in text(browser, "/history")


def test_a_tenants_text_is_escaped(browser: TestClient, url: str) -> None:
    store = Store(Database(url))
    save(store, "evil", NOW - timedelta(seconds=5), user="<script>alert(1)</script>")
    store.close()
    assert "<script>alert" not in text(browser, "/history")
    assert "<script>alert" not in text(browser, "/history/report")


def test_a_database_that_is_gone_gives_a_sentence(cluster: Cluster, url: str) -> None:
    for browser in browser_of(cluster, "postgresql://u:geheim@127.0.0.1:1/d"):
        found = text(browser, "/history", 502)
        assert "u:***@127.0.0.1:1" in found and "geheim" not in found


def test_without_a_database_there_is_no_such_page(cluster: Cluster) -> None:
    for browser in browser_of(cluster, ""):
        assert browser.get("/history").status_code == 404
        assert "History" not in text(browser, "/")
    paths = [getattr(route, "path", "") for route in app_.Pages().routes]
    assert not any("history" in path for path in paths), "nor in a pod, where viewers have rights of their own"
