"""Objects whose fields are nested too deeply: they are left out, and all others are listed and watched."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from dljob_operator.engine import transforms
from dljob_operator.engine.discovery import Resource
from dljob_operator.engine.informer import Informer, Source
from dljob_operator.engine.kube import KubeApi
from dljob_operator.engine.nesting import LIMIT, is_too_deep

ECHO = Resource("/apis/example.com/v1", "echojobs")


def nested(levels: int) -> Any:
    value: Any = {}
    for number in range(levels - 1):
        value = [value] if number % 2 else {"a": value, "b": 1}
    return value


@pytest.mark.parametrize(("levels", "too_deep"), [(1, False), (LIMIT + 1, False), (LIMIT + 2, True), (5_000, True)])
def test_levels(levels: int, too_deep: bool) -> None:
    assert is_too_deep(nested(levels)) is too_deep


def job(name: str, levels: int = 1) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "team", "uid": f"{name}-uid", "resourceVersion": "1"}
    return {"metadata": metadata, "spec": nested(levels)}


class Api(KubeApi):
    """Serves jobs; "unreadable" has so many levels that Python cannot decode its JSON."""

    def __init__(self, *jobs: dict[str, Any]) -> None:
        self.jobs = {one["metadata"]["name"]: one for one in jobs}

    def get(self, path: str, query: Any = None) -> dict[str, Any]:
        name = path.removeprefix(f"{ECHO.collection('team')}/")
        if name in self.jobs or name == "unreadable":
            if name == "unreadable":
                raise RecursionError
            return self.jobs[name]
        if "unreadable" in self.jobs:
            raise RecursionError
        return {"items": list(self.jobs.values()), "metadata": {"resourceVersion": "7"}}

    def list_metadata(self, path: str, query: Any = None) -> dict[str, Any]:
        return {
            "items": [{"metadata": one["metadata"]} for one in self.jobs.values()],
            "metadata": {"resourceVersion": "7"},
        }


def informer(*jobs: dict[str, Any]) -> Informer:
    source = Source("echojobs", lambda: ECHO, transforms.custom, "team", from_tenants=True)
    return Informer(Api(*jobs), source, lambda change: None)


@pytest.mark.parametrize("bad", [job("deep", LIMIT + 50), job("unreadable")], ids=lambda one: one["metadata"]["name"])
def test_a_list_leaves_it_out_and_has_all_others(bad: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    watching = informer(job("a"), bad, job("b"))
    with caplog.at_level(logging.WARNING):
        assert watching._list(ECHO) == "7"
    assert [one["metadata"]["name"] for one in watching.store.all()] == ["a", "b"]
    (record,) = caplog.records
    assert "nested too deeply" in record.getMessage()


def test_a_job_that_is_edited_into_such_a_one_is_no_longer_known() -> None:
    watching = informer(job("a"))
    watching._list(ECHO)
    watching._handle_event({"type": "MODIFIED", "object": job("a", LIMIT + 50)})
    assert watching.store.all() == []
