"""A status that a tenant wrote: kinds without a status schema let anything through, and no reconcile may raise."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import reconcile
from ansible_collections.dljob.operator.plugins.module_utils.logic.aggregate import job_status
from support.builders import MXNET, NOW, UID, Resource, mxjob, pods_of, stamp
from support.fake_api_server import FakeApiServer, FakeRestClient
from support.recording_api import Api

ENDED = {"type": "Succeeded", "status": "True", "reason": "JobSucceeded", "lastTransitionTime": stamp()}
CREATED = {**ENDED, "type": "Created"}
FAILURE = {"reason": "Failed", "pod": "digits-worker-0", "exitCode": 3, "message": "no"}
STATUSES: dict[str, dict[str, Any]] = {
    "running": {
        "phase": "Running",
        "state": "Running",
        "reason": "",
        "startTime": stamp(),
        "conditions": [CREATED],
        "attempt": 1,
        "retries": {"job": 1, "Worker-0": 1},
        "completed": {"worker": "0-1"},
        "specHash": "abc",
        "runtimeId": "abcd",
        "observedGeneration": 1,
        "replicas": "3/3",
        "replicaStatuses": {"Worker": {"active": 2, "failed": 1}},
    },
    "succeeded": {
        "phase": "CleanUp",
        "state": "Succeeded",
        "startTime": stamp(),
        "completionTime": stamp(),
        "conditions": [CREATED, ENDED],
    },
    "failed": {
        "phase": "CleanUp",
        "state": "Failed",
        "startTime": stamp(),
        "completionTime": stamp(),
        "failure": FAILURE,
        "conditions": [{**ENDED, "type": "Failed"}],
    },
}
VALUES = (None, True, -1, 7, 1.5, 2**70, "", "x", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", [], ["x"])
VALUES += ([None], [[]], {}, {"x": None}, {"job": "x"}, {"Worker": {"active": "x"}}, {"worker": 5}, {"worker": [None]})


def places(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if here:
        yield here
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*here, key))


def replaced(value: Any, place: tuple[Any, ...], by: Any) -> Any:
    made = copy.deepcopy(value)
    holder = made
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = by
    return made


CASES = [(name, place) for name, status in STATUSES.items() for place in places(status)]


def job(status: Any) -> Resource:
    policy = {"activeDeadlineSeconds": 5000, "ttlSecondsAfterFinished": 9000, "backoffLimit": 3}
    made = mxjob().v1().workers(2).run_policy(**policy)
    return {**made.resource(), "status": status}


@pytest.mark.parametrize(
    ("name", "place"), CASES, ids=[f"{name}: {'.'.join(map(str, place))}" for name, place in CASES]
)
@pytest.mark.parametrize("has_pods", [False, True], ids=["without pods", "with pods"])
def test_any_value_in_any_field_of_a_status(name: str, place: tuple[Any, ...], has_pods: bool) -> None:
    parsed = mxjob().v1().workers(2).job()
    pods = [pod.running().resource() for pod in pods_of(parsed)] if has_pods else []
    for value in VALUES:
        api = Api()
        owned = {"Pod": pods, "Service": [], "ConfigMap": []}
        context = Context(api, Reader(api, {UID: owned}), clock=lambda: NOW)
        written = job(replaced(STATUSES[name], place, value))
        reconcile(context, written, MXNET)
        job_status(written, MXNET, pods, NOW)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_any_value_as_the_status(value: Any) -> None:
    api = Api()
    context = Context(api, Reader(api, {UID: {"Pod": [], "Service": [], "ConfigMap": []}}), clock=lambda: NOW)
    reconcile(context, job(value), MXNET)
    job_status(job(value), MXNET, [], NOW)


# --- beside another job of the namespace

JOBS = ("default", "mxjobs")


class Two:
    """An API server with the running jobs digits and other."""

    def __init__(self) -> None:
        self.server = FakeApiServer()
        for name, uid in (("digits", UID), ("other", "another-uid")):
            made = mxjob(name).v1().workers(2).resource()
            self.server.add(JOBS, {**made, "metadata": {**made["metadata"], "uid": uid}})
            self.reconcile(name)
        for pod in self.server.objects["default", "pods"].values():
            pod["status"] = {"phase": "Running"}
        for name in ("digits", "other"):
            self.reconcile(name)
        assert {self.job(name)["status"]["state"] for name in ("digits", "other")} == {"Running"}

    def job(self, name: str) -> Resource:
        return self.server.objects[JOBS][name]

    def reconcile(self, name: str) -> None:
        client = FakeRestClient(self.server)
        for _ in range(4):
            reconcile(Context(client, Reader(client, None), clock=lambda: NOW), self.job(name), MXNET)

    def of(self, name: str) -> dict[tuple[str, str], Resource]:
        """The job ``name`` and its objects, by plural and name."""
        every = {(key[1], found["metadata"]["name"]): found for key in self.server.objects for found in self.all(key)}
        uid = self.job(name)["metadata"]["uid"]
        return {where: found for where, found in every.items() if uid in str(found["metadata"])}

    def all(self, key: tuple[str, str]) -> list[Resource]:
        return list(self.server.objects[key].values())


@pytest.mark.parametrize(
    ("written", "state", "deletes"),
    [
        ({"completed": {"scheduler": "0"}}, "Succeeded", False),
        ({"state": "Failed", "phase": "CleanUp"}, "Failed", False),
        ({"attempt": 3}, "Running", True),
        ({"retries": {"job": 9, "worker-0": 9}}, "Running", False),
        ({"specHash": "of another spec"}, "Running", False),
        ("all of the other's", "Running", False),
    ],
    ids=str,
)
def test_a_status_restarts_or_ends_its_own_job_and_no_other(written: Any, state: str, deletes: bool) -> None:
    two = Two()
    before = copy.deepcopy(two.of("other"))
    assert {plural for plural, _ in before} == {"mxjobs", "pods", "services"}
    given = two.job("other")["status"] if isinstance(written, str) else written
    two.server.objects[JOBS]["digits"] = {
        **two.job("digits"),
        "status": copy.deepcopy({**two.job("digits")["status"], **given}),
    }
    two.server.calls.clear()
    two.reconcile("digits")
    assert two.job("digits")["status"]["state"] == state
    assert any(call.method == "DELETE" for call in two.server.calls) is deletes
    assert two.of("other") == before
