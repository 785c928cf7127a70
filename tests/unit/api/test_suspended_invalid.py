"""A job that an edit has made invalid, and that is suspended: its pods are deleted whatever a single request meets."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.cluster_info import OperatorSettings
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome, reconcile
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.conclude import CACHE_REQUEUE, RETRY_REQUEUE
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import slices
from ansible_collections.dljob.operator.plugins.module_utils.shared.gang_scheduler import gang_scheduler
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import (
    ANNOTATION_LIFETIME,
    LABEL_JOB_UID,
    LABEL_MANAGED_BY,
    LABEL_REPLICA_TYPE,
    LIFETIME_ACTIVE,
)
from support.builders import MPI, MXNET, NOW, UID, mpijob, mxjob, stamp
from support.fake_api_server import FakeApiServer, FakeRestClient, Fault, failure

JOBS, PODS = ("default", "mxjobs"), ("default", "pods")
NAME = "digits"


def step(server: FakeApiServer, plural: str = "mxjobs", framework: Any = MXNET) -> Outcome:
    """A reconcile of an engine that watches the objects of the job."""
    client = FakeRestClient(server)
    kinds = {"Pod": "pods", "Service": "services", "ConfigMap": "configmaps", "Job": "jobs"}
    (job,) = server.objects["default", plural].values()
    uid = job["metadata"]["uid"]
    owned = {
        kind: [
            one
            for one in server.objects.get(("default", plural_), {}).values()
            if (one["metadata"].get("labels") or {}).get(LABEL_JOB_UID) == uid
        ]
        for kind, plural_ in kinds.items()
    }
    return reconcile(Context(client, Reader(client, {uid: owned}), clock=lambda: NOW), job, framework)


def running(workers: int) -> FakeApiServer:
    """Its pods run, and the job is then edited: suspended, and with an invalid value."""
    server = FakeApiServer(lambda: NOW)
    server.add(JOBS, mxjob(NAME).v1().workers(workers).resource())
    while len(server.objects.get(PODS, {})) < workers + 1:
        step(server)
    for pod in server.objects[PODS].values():
        pod["status"] = {"phase": "Running"}
    step(server)
    server.objects[JOBS][NAME]["spec"]["runPolicy"] = {"suspend": True, "backoffLimit": -1}
    return server


def deletions(server: FakeApiServer) -> int:
    return sum((call.method, call.plural) == ("DELETE", "pods") for call in server.calls)


def active(server: FakeApiServer) -> int:
    return sum(one.get("active", 0) for one in server.objects[JOBS][NAME]["status"]["replicaStatuses"].values())


def test_a_deletion_that_is_denied_is_tried_again_and_holds_the_quota() -> None:
    server = running(2)
    denied = failure(403, "Forbidden", "denied")
    server.faults.append(Fault(denied, lambda call: (call.method, call.plural) == ("DELETE", "pods"), times=1))
    outcome = step(server)
    assert (outcome.requeue_after, outcome.continues, deletions(server)) == (RETRY_REQUEUE, False, 3)
    status = server.objects[JOBS][NAME]["status"]
    assert (active(server), status["state"]) == (3, "Running")
    assert status["reason"].startswith("Pod/")
    assert "backoffLimit" in status["reason"]
    assert [one["reason"] for one in server.objects["default", "events"].values()][-1] == "FailedDeletePod"
    step(server)
    step(server)
    assert (active(server), deletions(server)) == (0, 4)
    server.calls.clear()
    assert step(server).requeue_after is None
    assert not [call for call in server.calls if call.method != "GET"], "it rests"


@pytest.mark.usefixtures("enough_time")
def test_a_denial_of_all_of_them_is_tried_again_after_a_while_and_reported_once() -> None:
    server = running(slices.LARGEST + 1)
    denied = failure(403, "Forbidden", "denied")
    server.faults.append(Fault(denied, lambda call: (call.method, call.plural) == ("DELETE", "pods"), times=10**6))
    for _ in range(2):
        outcome = step(server)
        assert (outcome.requeue_after, outcome.continues) == (RETRY_REQUEUE, False)
        assert "denied" in outcome.message
    assert [one["reason"] for one in server.objects["default", "events"].values()].count("FailedDeletePod") == 1


@pytest.mark.usefixtures("enough_time")
def test_more_pods_than_one_slice_deletes() -> None:
    server = running(slices.LARGEST + 1)
    outcome = step(server)
    assert (outcome.continues, outcome.requeue_after, deletions(server)) == (True, 0, slices.LARGEST)
    assert active(server)
    step(server)
    step(server)
    assert (active(server), deletions(server)) == (0, slices.LARGEST + 2)


def test_a_cache_with_an_older_spec_deletes_nothing() -> None:
    server = running(1)
    job = copy.deepcopy(server.objects[JOBS][NAME])
    server.objects[JOBS][NAME]["metadata"]["generation"] = 9
    client = FakeRestClient(server)
    owned = {"Pod": list(server.objects[PODS].values()), "Service": []}
    reconcile(Context(client, Reader(client, {UID: owned}), clock=lambda: NOW), job, MXNET)
    assert not deletions(server)


@pytest.mark.parametrize("suspend", [True, False])
def test_the_batch_job_of_a_launcher_goes_too(suspend: bool) -> None:
    server = FakeApiServer(lambda: NOW)
    server.add(("default", "mpijobs"), mpijob())
    for _ in range(3):
        step(server, "mpijobs", MPI)
        for pod in server.objects[PODS].values():
            pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    assert server.objects["default", "jobs"]
    (job,) = server.objects["default", "mpijobs"].values()
    job["spec"]["runPolicy"] = {"suspend": suspend, "backoffLimit": -1}
    server.calls.clear()
    step(server, "mpijobs", MPI)
    deleted = {call.plural for call in server.calls if call.method == "DELETE"}
    assert deleted == ({"jobs", "pods"} if suspend else set())


def test_the_pod_group_goes_too() -> None:
    server = running(1)
    group = {"name": NAME, "namespace": "default", "labels": {LABEL_JOB_UID: UID}, "uid": "g"}
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "name": NAME, "uid": UID, "controller": True}
    annotations = {ANNOTATION_LIFETIME: LIFETIME_ACTIVE}
    api_version = "scheduling.volcano.sh/v1beta1"
    made = {"metadata": {**group, "ownerReferences": [owner], "annotations": annotations}}
    server.add(("default", "podgroups"), {"apiVersion": api_version, "kind": "PodGroup", **made})
    client = FakeRestClient(server)
    settings = OperatorSettings(gang=gang_scheduler("volcano"))
    for _ in range(3):
        reconcile(Context(client, Reader(client), settings, clock=lambda: NOW), server.objects[JOBS][NAME], MXNET)
    assert [call.name for call in server.calls if (call.method, call.plural) == ("DELETE", "podgroups")] == [NAME]


def test_pods_of_training_operator_go_too() -> None:
    """They have no label of this operator, whose validation may refuse what training-operator ran."""
    server = running(1)
    for pod in server.objects[PODS].values():
        del pod["metadata"]["labels"][LABEL_JOB_UID]
        assert pod["metadata"]["labels"]["training.kubeflow.org/job-name"] == NAME
    denied = failure(403, "Forbidden", "denied")
    server.faults.append(Fault(denied, lambda call: (call.method, call.plural) == ("DELETE", "pods"), times=1))
    step(server)
    assert active(server) == 2
    step(server)
    step(server)
    assert (active(server), deletions(server)) == (0, 3)
    assert all(pod["metadata"].get("deletionTimestamp") for pod in server.objects[PODS].values())


def stale(server: FakeApiServer, pods: list[Any], plural: str = "mxjobs", framework: Any = MXNET) -> Outcome:
    """A reconcile with a cache of these pods."""
    client = FakeRestClient(server)
    reader = Reader(client, {UID: {"Pod": copy.deepcopy(pods), "Service": []}})
    server.calls.clear()
    (job,) = server.objects["default", plural].values()
    return reconcile(Context(client, reader, clock=lambda: NOW), job, framework)


def test_pods_that_are_gone_begin_no_job_that_is_resumed_with_its_errors() -> None:
    """It would hold the quota of its queue without a pod: its status says that it runs, and it is not requeued."""
    server = running(1)
    pods = copy.deepcopy([*server.objects[PODS].values()])
    for _ in range(3):
        step(server)
    server.objects[PODS].clear()
    server.objects[JOBS][NAME]["spec"]["runPolicy"]["suspend"] = False
    outcome = stale(server, pods)
    assert (outcome.requeue_after, outcome.status) == (CACHE_REQUEUE, None)
    assert {call.method for call in server.calls} == {"GET"}
    step(server)
    assert server.objects[JOBS][NAME]["status"]["state"] == "Failed"


SUSPENDED = {"conditions": [{"type": "Suspended", "status": "True"}]}


@pytest.mark.parametrize(
    "status",
    [{}, {"reason": "Pod/a: denied"}, SUSPENDED, {**SUSPENDED, "startTime": stamp(-60)}],
    ids=["none", "without a beginning", "admitted", "admitted again"],
)
def test_a_job_does_not_fail_whose_pods_the_cache_lacks(status: dict[str, Any]) -> None:
    """No later plan would delete them."""
    server = running(1)
    server.objects[JOBS][NAME] |= {"status": status}
    server.objects[JOBS][NAME]["spec"]["runPolicy"]["suspend"] = False
    outcome = stale(server, [])
    assert (outcome.requeue_after, outcome.status) == (CACHE_REQUEUE, None)
    step(server)
    assert server.objects[JOBS][NAME]["status"]["startTime"]
    assert server.objects[PODS]


def test_nor_does_one_whose_launchers_job_the_cache_lacks() -> None:
    server = FakeApiServer(lambda: NOW)
    server.add(("default", "mpijobs"), mpijob(None))
    step(server, "mpijobs", MPI)
    (job,) = server.objects["default", "mpijobs"].values()
    assert server.objects["default", "jobs"]
    assert not server.objects.get(PODS)
    job["spec"]["runPolicy"], job["status"] = {"backoffLimit": -1}, {}
    outcome = stale(server, [], "mpijobs", MPI)
    assert (outcome.requeue_after, outcome.status) == (CACHE_REQUEUE, None)
    server.objects["default", "jobs"].clear()
    assert stale(server, [], "mpijobs", MPI).status


def test_a_launchers_job_that_the_cache_has_is_not_awaited_nor_one_that_runs_no_replica() -> None:
    server = FakeApiServer(lambda: NOW)
    server.add(("default", "mpijobs"), mpijob(None))
    step(server, "mpijobs", MPI)
    (job,) = server.objects["default", "mpijobs"].values()
    job["spec"]["runPolicy"], job["status"] = {"backoffLimit": -1}, copy.deepcopy(SUSPENDED)
    (launcher,) = server.objects["default", "jobs"].values()
    launcher["metadata"]["deletionTimestamp"] = stamp()
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "pi-launcher", "controller": True}
    metadata = {"name": "pi-launcher-a", "namespace": "default", "labels": launcher["metadata"]["labels"]}
    owners = [{**owner, "uid": launcher["metadata"]["uid"]}]
    server.add(PODS, {"kind": "Pod", "metadata": {**metadata, "ownerReferences": owners}, "spec": {}, "status": {}})
    other = copy.deepcopy(launcher)
    other["metadata"] |= {"name": "other", "uid": "other"}
    del other["metadata"]["labels"][LABEL_REPLICA_TYPE]
    server.add(("default", "jobs"), other)
    outcome = step(server, "mpijobs", MPI)
    assert outcome.status
    assert outcome.status["state"] == "Failed"


@pytest.mark.parametrize("owned", [True, False])
def test_a_pod_that_no_cache_has_is_not_awaited(owned: bool) -> None:
    """Somebody has taken the label by which the engine watches it, or made a pod with the job's own label."""
    server = running(1)
    server.objects[JOBS][NAME] |= {"status": {}}
    for pod in server.objects[PODS].values():
        if owned:
            del pod["metadata"]["labels"][LABEL_MANAGED_BY]
        else:
            del pod["metadata"]["ownerReferences"]
    outcome = stale(server, [])
    assert outcome.status
    assert outcome.status["state"] == "Failed"


@pytest.mark.parametrize("is_denied", [False, True])
def test_pods_of_an_older_spec_do_not_outlive_the_failure(is_denied: bool) -> None:
    """An operator that has restarted has the valid spec of before in its cache, and creates them."""
    server = running(1)
    made = copy.deepcopy(server.objects[PODS])
    for _ in range(3):
        step(server)
    server.objects[PODS].clear()
    server.objects[JOBS][NAME]["spec"]["runPolicy"]["suspend"] = False
    step(server)
    failed = copy.deepcopy(server.objects[JOBS][NAME]["status"])
    assert failed["state"] == "Failed"
    server.objects[PODS].update(made)
    if is_denied:
        denied = failure(403, "Forbidden", "denied")
        server.faults.append(Fault(denied, lambda call: (call.method, call.plural) == ("DELETE", "pods"), times=1))
        assert step(server).requeue_after == RETRY_REQUEUE
    server.calls.clear()
    step(server)
    assert deletions(server) == 2 - is_denied
    assert server.objects[JOBS][NAME]["status"] == failed


@pytest.mark.parametrize("backoff_limit", [-1, 1], ids=["invalid", "valid"])
def test_deletions_that_the_cache_lacks_are_not_requested_without_a_pause(backoff_limit: int) -> None:
    server = running(1)
    pods = [*server.objects[PODS].values()]
    server.objects[PODS].clear()
    server.objects[JOBS][NAME]["spec"]["runPolicy"]["backoffLimit"] = backoff_limit
    assert stale(server, pods).requeue_after == CACHE_REQUEUE
    assert deletions(server) == len(pods)
