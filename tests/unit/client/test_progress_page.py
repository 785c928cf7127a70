"""How far the training of jobs is, on the web page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx2")
from dljob.logs import progress as progress_
from support.polling import until

from .conftest import PTJS, Cluster
from .test_progress import RANKS, SLOWEST, running, state
from .test_web import JOB, Page

HEAD = '<a href="/?sort=progress">Progress</a>'
BAR = '<progress max="100" value="{}" aria-label="Progress of {}"></progress>'


@pytest.fixture
def page(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    made = Page(cluster, monkeypatch)
    yield made
    made.live.close()


def cells(text: str, name: str) -> list[str]:
    """Of the row of a job."""
    (row,) = re.findall(rf'<tr>((?:(?!</tr>).)*/{name}">.*?)</tr>', text, re.DOTALL)
    return [cell.strip() for cell in re.findall(r"<td>(.*?)</td>", row, re.DOTALL)]


def section(text: str) -> str:
    """Of a job's page; "" without one."""
    return next(iter(re.findall(r"<h2>Progress</h2>(.*?)</section>", text, re.DOTALL)), "")


def test_the_overview_has_a_column_where_a_job_reports(cluster: Cluster, page: Page) -> None:
    made = cluster.job("a")
    cluster.job("b")
    page.wait(2).enter()
    text = page.text("/")
    assert HEAD not in text and "<progress" not in text and len(cells(text, "a")) == 11
    before = page.live.version
    cluster.fake.store("MODIFIED", PTJS, {**made, "status": running()})
    until(lambda: page.live.version != before)
    text = page.text("/")
    assert HEAD in text and len(re.findall('<th scope="col"><a', text)) == len(cells(text, "a")) == 12
    assert cells(text, "a")[9] == f"{BAR.format(45, 'a')} 45% ~13m"
    assert cells(text, "b")[9] == ""
    shown = {name: "Progress</a>" in page.text(f"/?q=name:/{name}") for name in "ab"}
    assert shown == {"a": True, "b": False}, "of the jobs that are shown"


def test_it_sorts_and_finds(cluster: Cluster, page: Page) -> None:
    for name, percent in (("a", 45), ("b", 100), ("c", 7)):
        cluster.job(name, status=running(progressPercentage=percent))
    page.wait(3).enter()
    names = re.compile(r'<a href="/jobs/[^"]+">(\w+)</a>')
    assert names.findall(page.text("/?sort=-progress")) == ["b", "a", "c"]
    assert names.findall(page.text("/?q=progress:45")) == ["a"]


def test_the_page_of_a_job_has_a_section(cluster: Cluster, page: Page) -> None:
    metrics = [{"name": f"m{number}", "value": f"{number}.5"} for number in range(10)]
    cluster.job("a", status={**running(ago=15, metrics=metrics), "rankStatus": RANKS})
    page.wait(1).enter()
    text = section(page.text(JOB))
    assert re.search(rf"{BAR.format(45, 'a')} 45%, 1[23]m left, reported 1\ds ago</p>", text)
    assert re.findall(r"<dt>(\w+)</dt><dd>([\d.]+)</dd>", text) == [(f"m{n}", f"{n}.5") for n in range(8)]
    assert "2 more metrics are in the YAML." in text
    assert f"<p>{SLOWEST}</p>" in text
    assert section(page.browser.get(JOB, headers={"X-Live": "1"}).text), "a page that keeps itself up to date has it"


def test_an_ended_job_has_no_time_left(cluster: Cluster, page: Page) -> None:
    cluster.job("a", status={**running(), **state("Failed")})
    page.wait(1).enter()
    assert f"{BAR.format(45, 'a')} 45%, reported" in section(page.text(JOB))
    assert cells(page.text("/"), "a")[9].endswith("45%")


def test_a_job_that_reports_nothing_has_no_section(cluster: Cluster, page: Page) -> None:
    cluster.job("a", status=state("Running"))
    page.wait(1).enter()
    text = page.text(JOB)
    assert not section(text) and "<progress" not in text


@pytest.mark.parametrize(
    "more",
    [
        {"progressPercentage": '"><script>', "estimatedRemainingSeconds": "<i>", "lastUpdatedTime": "<i>"},
        {"metrics": [{"name": '<script>"', "value": "\x1b[2J<i>"}]},
        {"metrics": [[["<i>"]], {"name": ["<i>"], "value": {"<i>": 1}}]},
    ],
)
def test_what_a_tenant_writes_stays_text(cluster: Cluster, page: Page, more: dict[str, Any]) -> None:
    ranks = {"reporting": "<i>", "slowest": {"replica": "<i>\x00", "node": "<i>\u202e"}}
    cluster.job("a", status={**running(**more), "rankStatus": ranks})
    page.wait(1).enter()
    for text in (page.text("/"), page.text(JOB)):
        assert "<i>" not in text and '"><script>' not in text
        assert all(char.isprintable() or char == "\n" for char in text)
    assert "slowest: &lt;i&gt;\\x00 on &lt;i&gt;\\u202e" in section(page.text(JOB))


def test_a_pattern_shows_it(cluster: Cluster, page: Page) -> None:
    pytest.importorskip("re2")
    made = cluster.job("a", metadata={"annotations": {progress_.ANNOTATION: r"(?P<percent>\d+)%"}})
    log = cluster.worker(made, 0)
    log.write(1, "45%")
    page.wait(1).enter()
    assert f"{BAR.format(45, 'a')} 45%, by the log of a-worker-0</p>" in section(page.text(JOB))
    log.status = 403
    text = section(page.text(JOB))
    assert "<p>unknown: you may not get pods/log in the namespace team</p>" in text and "<progress" not in text
    assert not [one for one in cluster.requests if one.path.endswith("/log") and one.query.get("follow")]
    before = len(cluster.requests)
    page.text("/")
    assert len(cluster.requests) == before, "the overview reads no logs"
