"""Which annotations of jobs the bridge removes before ansible-operator starts."""

from __future__ import annotations

import itertools
import logging
import re
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator.ansible_operator_bridge.harmful_annotations import LIMITS, PREFIX, remove_harmful
from dljob_operator.engine.cache import nesting
from dljob_operator.engine.kube import ApiConnectionError, KubeApi, NestedTooDeeply
from dljob_operator.watches import GVK, Watch

ECHO = GVK("example.com", "v1", "EchoJob")
COLLECTION = "/apis/example.com/v1/namespaces/team/echojobs"


class Api(KubeApi):
    """Serves `jobs`, one in each page; records patches, and refuses the first ones with `refusals`."""

    def __init__(self, *jobs: dict[str, Any], refusals: dict[str, Exception] | None = None) -> None:
        self.jobs = jobs
        self.refusals = refusals or {}
        self.lists: list[str] = []
        self.patches: list[tuple[str, Any]] = []

    def get(self, path: str, query: Any = None) -> dict[str, Any]:
        if error := self.refusals.get("discovery"):
            raise error
        return {"resources": [{"name": "echojobs", "kind": "EchoJob", "namespaced": True}]}

    def list_objects(self, path: str, query: Any = None) -> dict[str, Any]:
        if error := self.refusals.get(path):
            raise error
        self.lists.append(path)
        number = int(query.get("continue", 0))
        more = {"continue": str(number + 1)} if number + 1 < len(self.jobs) else {}
        return {"metadata": more, "items": list(itertools.islice(self.jobs, number, number + 1))}

    def request(self, method: str, path: str, body: Any = None, **_: Any) -> dict[str, Any]:
        assert method == "PATCH"
        if error := self.refusals.get(path):
            raise error
        self.patches.append((path, body))
        if path.endswith("/deep"):
            raise NestedTooDeeply(b"{}")  # as the response to a success, which is the object
        return {}


def job(name: str, **annotations: str) -> dict[str, Any]:
    found = {f"{PREFIX}{key.replace('_', '-')}": value for key, value in annotations.items()}
    metadata = {"name": name, "namespace": "team", "uid": f"uid of {name}"}
    return {"metadata": {**metadata, "annotations": found} if found else metadata}


def removed(api: Api, *namespaces: str) -> dict[str, list[str]]:
    remove_harmful(api, [Watch(ECHO)], namespaces)
    for path, body in api.patches:
        name = path.rpartition("/")[2]
        assert path == f"{COLLECTION}/{name}"
        assert body["metadata"]["uid"] == f"uid of {name}"
        assert set(body["metadata"]["annotations"].values()) == {None}
    return {
        path.rpartition("/")[2]: [key.removeprefix(PREFIX) for key in body["metadata"]["annotations"]]
        for path, body in api.patches
    }


def test_values_that_harm_others_are_removed(caplog: pytest.LogCaptureFixture) -> None:
    api = Api(
        job("plain"),
        job("fine", verbosity="3", max_runner_artifacts="20"),
        job("hostile", verbosity="9000000000000000000"),
        job("both", verbosity="8", max_runner_artifacts="0"),
        job("one", max_runner_artifacts="1"),
        job("two", max_runner_artifacts="2"),
        job("three", max_runner_artifacts="3"),
        job("itself", reconcile_period="often"),
    )
    assert removed(api) == {
        "hostile": ["verbosity"],
        "both": ["verbosity", "max-runner-artifacts"],
        "one": ["max-runner-artifacts"],
        "two": ["max-runner-artifacts"],
    }
    assert "removed annotations that end ansible-operator" in caplog.text


def test_of_a_job_that_cannot_be_read_all_are_removed() -> None:
    """A tenant could hide them so."""
    unreadable = {**job("deep"), nesting.UNREADABLE: True}
    api = Api(unreadable, job("hostile", verbosity="8"))
    assert removed(api) == {"deep": ["verbosity", "max-runner-artifacts"], "hostile": ["verbosity"]}


def test_only_the_namespaces_of_the_operator_are_read() -> None:
    api = Api()
    removed(api, "team", "other")
    assert api.lists == [COLLECTION, "/apis/example.com/v1/namespaces/other/echojobs"]


@pytest.mark.parametrize("where", ["discovery", "/apis/example.com/v1/echojobs"])
@pytest.mark.parametrize("error", [ApiError(500, "", "busy"), ApiConnectionError("no answer")])
def test_the_start_does_not_fail_without_the_api_server(
    where: str, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    assert removed(Api(job("hostile", verbosity="8"), refusals={where: error})) == {}
    assert "cannot look for annotations" in caplog.text


@pytest.mark.parametrize(("status", "logged"), [(404, False), (409, False), (403, True)])
def test_one_that_cannot_be_changed_keeps_no_other(status: int, logged: bool, caplog: pytest.LogCaptureFixture) -> None:
    jobs = job("first", verbosity="8"), job("second", verbosity="8")
    refusals: dict[str, Exception] = {f"{COLLECTION}/first": ApiError(status, "", "no")}
    with caplog.at_level(logging.ERROR):
        assert removed(Api(*jobs, refusals=refusals)) == {"second": ["verbosity"]}
    assert ("cannot remove annotations" in caplog.text) == logged


@pytest.mark.parametrize(
    "value", ["0", "0s", "1s", "30s", "500ms", "1h30m", "1h30m10s", "1.5h", "168h", "604800s", "99999h", "0.5s"]
)
def test_durations_that_go_reads(value: str) -> None:
    assert LIMITS[f"{PREFIX}reconcile-period"].permits(value)


@pytest.mark.parametrize("value", ["30", "often", "1d", "1.2.3h", "9999999h", "-1s", "1s ", "1" * 300 + "s", "1h" * 9])
def test_durations_that_go_does_not_read_or_that_nobody_needs(value: str) -> None:
    assert not LIMITS[f"{PREFIX}reconcile-period"].permits(value)


def test_the_patterns_are_linear_in_both_syntaxes() -> None:
    for limit in LIMITS.values():
        assert not re.search(r"\\|\(\?", limit.pattern), "RE2 has neither look-around nor Python's classes"
        assert not limit.permits("1" * 250_000)
