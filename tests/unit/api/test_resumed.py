"""The first reconcile of a job that is resumed: its cache may not have the deletions of the suspension yet."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome, reconcile
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.conclude import CACHE_REQUEUE
from support.builders import MPI, MXNET, NOW, UID, mpijob, mxjob, pod_of, stamp
from support.fake_api_server import FakeApiServer, FakeRestClient

JOBS, PODS = ("default", "mxjobs"), ("default", "pods")
MPIJOBS, BATCH_JOBS = ("default", "mpijobs"), ("default", "jobs")
MADE = mxjob("digits").v1().workers(1)


def resumed(server: FakeApiServer, *, has_watch: bool = True) -> Outcome:
    """``server`` has the job, which its status calls suspended; the cache has a worker that has succeeded."""
    suspended = MADE.status(conditions=[{"type": "Suspended", "status": "True"}], startTime=stamp(-60))
    server.add(JOBS, suspended.resource())
    pod = pod_of(MADE.job(), "worker").succeeded().resource()
    client = FakeRestClient(server)
    owned = {"Pod": [pod], "Service": []} if has_watch else None
    context = Context(client, Reader(client, None if owned is None else {UID: owned}), clock=lambda: NOW)
    return reconcile(context, server.objects[JOBS]["digits"], MXNET)


@pytest.mark.parametrize("terminates", [True, False], ids=["terminates", "is gone"])
def test_an_exit_of_before_does_not_count(terminates: bool) -> None:
    server = FakeApiServer(lambda: NOW)
    if terminates:
        pod = pod_of(MADE.job(), "worker").succeeded().resource()
        server.add(PODS, {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": stamp()}})
    outcome = resumed(server)
    assert (outcome.requeue_after, outcome.status) == (CACHE_REQUEUE, None)
    assert outcome.message == "the cache lacks deletions of pods of the job"
    assert {call.method for call in server.calls} == {"GET"}


def test_pods_that_the_api_server_has_are_those_of_a_resume_whose_status_was_lost() -> None:
    server = FakeApiServer(lambda: NOW)
    server.add(PODS, pod_of(MADE.job(), "worker").succeeded().resource())
    outcome = resumed(server)
    assert outcome.status
    assert outcome.status["completed"] == {"worker": "0"}


def test_without_an_engine_the_reconcile_has_just_read_them() -> None:
    server = FakeApiServer(lambda: NOW)
    server.add(PODS, pod_of(MADE.job(), "worker").succeeded().resource())
    outcome = resumed(server, has_watch=False)
    assert outcome.status
    assert sum((call.method, call.plural, call.name) == ("GET", "pods", "") for call in server.calls) == 1


@pytest.mark.parametrize("is_there", [True, False])
def test_nor_does_the_end_of_a_batch_job_of_before(is_there: bool) -> None:
    """The launcher has ended just before the suspension deleted its Job."""
    server = FakeApiServer(lambda: NOW)
    server.add(MPIJOBS, mpijob(1))
    client = FakeRestClient(server)
    for _ in range(3):
        reconcile(Context(client, Reader(client), clock=lambda: NOW), server.objects[MPIJOBS]["pi"], MPI)
        for pod in server.objects[PODS].values():
            pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    job, (launcher,) = server.objects[MPIJOBS]["pi"], server.objects[BATCH_JOBS].values()
    launcher["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    kinds = {"Pod": "pods", "Service": "services", "ConfigMap": "configmaps", "Job": "jobs"}
    cached = {kind: copy.deepcopy([*server.objects["default", plural].values()]) for kind, plural in kinds.items()}
    job["status"]["conditions"].append({"type": "Suspended", "status": "True"})
    if not is_there:
        server.objects[BATCH_JOBS].clear()
    outcome = reconcile(Context(client, Reader(client, {UID: cached}), clock=lambda: NOW), job, MPI)
    if is_there:
        assert outcome.status
        assert outcome.status["completionTime"]
    else:
        assert (outcome.requeue_after, outcome.status) == (CACHE_REQUEUE, None)
