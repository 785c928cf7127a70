"""The list and the report of a month, against what plain Python adds up."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.history import ended, job, stamp

from dljob_operator.history.queries import Filter, History, Row
from dljob_operator.history.record import Place, day_record, job_record
from dljob_operator.history.store import Store

from .conftest import Empty

NOVEMBER = datetime(2026, 11, 1, tzinfo=UTC)
NOW = datetime(2026, 12, 31, tzinfo=UTC)


@pytest.fixture
def history(empty: Empty, store: Store) -> Iterator[History]:
    made = History(empty.url)
    yield made
    made.close()


def save(store: Store, name: str, at: datetime, *, cluster: str = "", **more: Any) -> None:
    """A job that ended at a time. `more` has its state, its user, its kind, its namespace and its seconds."""
    made = ended(name, more.get("state", "Succeeded"), at, labels={"dljob.operator/user": more.get("user", "ada")})
    made["metadata"] |= {"creationTimestamp": stamp(more.get("created", at - timedelta(hours=1)))}
    made["metadata"]["namespace"] = more.get("namespace", "team")
    made["kind"] = more.get("kind", "PyTorchJob")
    made["status"] |= {"retries": {"worker-0": more.get("restarts", 0)}, "usage": usage(more.get("gpu", 0), at)}
    found = job_record(made, Place(cluster), NOW)
    assert found is not None
    store.save([found])


def usage(gpu: float, as_of: datetime) -> dict[str, Any]:
    return {"asOf": stamp(as_of), "resourceSeconds": {"nvidia.com/gpu": gpu, "cpu": 2 * gpu, "memory": 3 * gpu}}


def look(store: Store, name: str, at: datetime, gpu: float, user: str = "ada") -> None:
    """A row of a day, of a job that has run for long."""
    made = job(name, creationTimestamp=stamp(NOVEMBER - timedelta(days=400)), labels={"dljob.operator/user": user})
    made["status"] = {"state": "Running", "usage": usage(gpu, at)}
    found = day_record(made, Place(), at)
    assert found is not None
    store.save_days([found])


def names(found: list[dict[str, Any]]) -> list[str]:
    return [one["name"] for one in found]


def test_the_newest_first_in_pages(history: History, store: Store) -> None:
    for number in range(7):
        save(store, f"j{number}", NOVEMBER + timedelta(hours=number // 2))
    everything = names(history.newest())
    assert everything == ["j6", "j5", "j4", "j3", "j2", "j1", "j0"], "of two that end at a time, by their UIDs"
    paged: list[str] = []
    before = None
    while page := history.newest(2, Filter(before=before)):
        paged += names(page)
        before = page[-1]["ended"], page[-1]["uid"]
    assert paged == everything


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (Filter(), ["d", "c", "b", "a"]),
        (Filter(namespace="other"), ["b"]),
        (Filter(user="bob"), ["c"]),
        (Filter(kind="tfjob"), ["d"]),
        (Filter(result="Failed"), ["a"]),
        (Filter(cluster="lab"), ["d"]),
        (Filter(since=NOVEMBER + timedelta(hours=2)), ["d", "c"]),
        (Filter(user="ada", namespace="team"), ["d", "a"]),
        (Filter(user="ada' OR 1=1 --"), []),
    ],
)
def test_filters(history: History, store: Store, where: Filter, expected: list[str]) -> None:
    save(store, "a", NOVEMBER, state="Failed")
    save(store, "b", NOVEMBER + timedelta(hours=1), namespace="other")
    save(store, "c", NOVEMBER + timedelta(hours=2), user="bob")
    save(store, "d", NOVEMBER + timedelta(hours=3), kind="TFJob", cluster="lab")
    assert names(history.newest(50, where)) == expected


def test_the_report_of_a_month(history: History, store: Store) -> None:
    december = datetime(2026, 12, 1, tzinfo=UTC)
    save(store, "before", NOVEMBER - timedelta(seconds=1), gpu=1000)
    save(store, "first", NOVEMBER, gpu=10, restarts=2)
    save(store, "last", december - timedelta(seconds=1), gpu=20, state="Failed")
    save(store, "after", december, gpu=1000)
    save(store, "bob's", NOVEMBER, gpu=5, user="bob", namespace="other")
    found = history.month(2026, 11, ["namespace", "user"])
    assert found == [
        Row(("team", "ada"), 2, 1, 1, 2, 0, 30.0, 60.0, 90.0),
        Row(("other", "bob"), 1, 1, 0, 0, 0, 5.0, 10.0, 15.0),
    ]
    assert history.month(2026, 11, ["user"], Filter(namespace="other")) == [
        Row(("bob",), 1, 1, 0, 0, 0, 5.0, 10.0, 15.0)
    ]
    assert history.month(2026, 9, ["user"]) == []
    assert history.month(2026, 12, ["kind"])[0].jobs == 1


def test_a_long_job_counts_in_each_month_what_it_used_in_it(history: History, store: Store) -> None:
    """From October to December, with a look on two days of each month."""
    for month, day, gpu in ((10, 1, 100), (10, 31, 300), (11, 1, 310), (11, 30, 900), (12, 1, 950)):
        look(store, "long", datetime(2026, month, day, 23, tzinfo=UTC), gpu, user="ada" if month < 12 else "eve")
    look(store, "other", datetime(2026, 11, 5, tzinfo=UTC), 7)

    def gpus() -> list[float]:
        return [sum(row.gpu_seconds for row in history.month(2026, month, ["user"])) for month in (10, 11, 12)]

    assert gpus() == [300, 600 + 7, 50]
    save(store, "long", datetime(2026, 12, 2, tzinfo=UTC), gpu=1000, created=datetime(2026, 10, 1, tzinfo=UTC))
    assert gpus() == [300, 600 + 7, 100], "all that it has used, each second once"
    assert sum(row.jobs for row in history.month(2026, 11, ["user"])) == 0, "it had not ended"
    resources = history.resources(2026, 11, ["namespace"])
    assert resources == {("team",): {"nvidia.com/gpu": 607.0, "cpu": 1214.0, "memory": 1821.0}}
    assert history.resources(2026, 12, [])[()]["nvidia.com/gpu"] == 100.0


def test_resources_are_those_of_the_report(history: History, store: Store) -> None:
    for number in range(10):
        save(store, f"j{number}", NOVEMBER + timedelta(days=number), gpu=number, user=f"u{number % 3}")
    report = {row.group: row.gpu_seconds for row in history.month(2026, 11, ["user"])}
    found = history.resources(2026, 11, ["user"])
    assert {group: of.get("nvidia.com/gpu", 0.0) for group, of in found.items()} == report
