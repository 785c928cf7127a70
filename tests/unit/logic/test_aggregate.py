"""A job's status from its pods: which pods are the job's, and the status in one format for every flavor."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.aggregate import (
    AmbiguousJob,
    belongs,
    job_status,
    replica_counts,
    uid_of,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import any_framework
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from support.builders import (
    CAFFE2,
    MXNET,
    NOW,
    PYTORCH,
    UID,
    MXJob,
    Pod,
    Resource,
    caffe2job,
    mxjob,
    pod_of,
    pods_of,
    pytorchjob,
    stamp,
)

FLAVORS = ("v1", "v1alpha1", "fioravanzo", "mpba")
CONTROLLER = {"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "name": "digits", "uid": UID, "controller": True}
BATCH_JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "digits", "uid": "a-job", "controller": True}
OF_THE_JOB = {"dljob.operator/job-uid": UID}


def digits(flavor: str = "v1") -> MXJob:
    return mxjob("digits").flavor(flavor).workers(2)


def status_of(job: MXJob, *pods: Pod) -> dict[str, Any]:
    return job_status(job.resource(), MXNET, [pod.resource() for pod in pods], NOW)


def counts(desired: int, **states: int) -> dict[str, int]:
    return {"desired": desired, "active": 0, "succeeded": 0, "failed": 0, "pending": 0, **states}


# --- the status


def test_a_new_job() -> None:
    created = {"reason": "MXJobCreated", "message": "MXJob digits is created."}
    times = dict.fromkeys(("lastUpdateTime", "lastTransitionTime"), stamp())
    assert status_of(digits()) == {
        "state": "Created",
        "phase": "Creating",
        "reason": "",
        "replicaStatuses": {"Scheduler": counts(1, pending=1), "Worker": counts(2, pending=2)},
        "conditions": [{"type": "Created", "status": "True", **created, **times}],
        "failure": {},
    }


@pytest.mark.parametrize("flavor", FLAVORS)
def test_the_replicas_by_state(flavor: str) -> None:
    job = mxjob("digits").flavor(flavor).workers(4)
    scheduler, first, second, third, _ = pods_of(job.job())
    status = status_of(job, scheduler.running(), first.running(), second.succeeded(), third.failed(1))
    assert status["replicaStatuses"] == {
        "Scheduler": counts(1, active=1),
        "Worker": counts(4, active=1, succeeded=1, failed=1, pending=1),
    }


def test_a_replica_of_the_only_type_that_waits_is_not_active() -> None:
    """The status of a Caffe2Job counts it so."""
    job = parse_job(caffe2job(3), CAFFE2)
    first, second, third = pods_of(job, CAFFE2)
    pods = [first.running().resource(), second.resource(), third.succeeded().resource()]
    status = job_status(caffe2job(3), CAFFE2, pods, NOW)
    assert status["replicaStatuses"] == {"Worker": counts(3, active=1, succeeded=1, pending=1)}


def test_what_keeps_a_pod_from_running() -> None:
    status = status_of(digits(), pod_of(digits().job(), "worker").waiting("ImagePullBackOff", "no such image"))
    assert (status["phase"], status["reason"]) == ("Creating", "digits-worker-0: ImagePullBackOff: no such image")


def test_a_failed_container() -> None:
    status = status_of(digits(), pod_of(digits().job(), "worker").failed(3, "Error", "no digits"))
    assert status["failure"] == {
        "pod": "digits-worker-0",
        "container": "mxnet",
        "exitCode": 3,
        "reason": "Error",
        "message": "container mxnet of pod digits-worker-0 exited with 3 (Error): no digits",
        "log": "no digits",
    }


def test_a_pod_that_failed_without_a_container() -> None:
    status = status_of(digits(), pod_of(digits().job(), "worker").refused_by_node("OutOfcpu", ""))
    assert status["failure"] == {
        "pod": "digits-worker-0",
        "container": "",
        "exitCode": None,
        "reason": "OutOfcpu",
        "message": "pod digits-worker-0 failed: OutOfcpu",
        "log": "",
    }


FAILED = {"type": "Failed", "status": "True", "reason": "MXJobFailed", "message": "it broke"}
NOTHING = {"pod": "", "container": "", "exitCode": None}


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        ({"conditions": [FAILED]}, {**NOTHING, "reason": "MXJobFailed", "message": "it broke", "log": ""}),
        ({"state": "Failed"}, {**NOTHING, "reason": "", "message": "", "log": ""}),
        (
            {"state": "Failed", "failure": {"reason": "Evicted", "message": "no memory"}},
            {**NOTHING, "reason": "Evicted", "message": "no memory", "log": ""},
        ),
        (
            {"conditions": [FAILED], "failure": {"pod": "p", "container": "c", "exitCode": 0, "message": "oh"}},
            {"pod": "p", "container": "c", "exitCode": 0, "reason": "MXJobFailed", "message": "it broke", "log": "oh"},
        ),
        ({"state": "Succeeded", "failure": {"reason": "Evicted"}}, {}),
    ],
)
def test_the_failure_of_a_finished_job(status: dict[str, Any], failure: dict[str, Any]) -> None:
    made = status_of(digits().status(**status))
    assert made["failure"] == failure
    assert made["state"] == ("Failed" if failure else "Succeeded")


def test_a_job_of_another_controller_has_the_status_of_that() -> None:
    job = digits().run_policy(managedBy="example.com/other").status(conditions=[{"type": "Created", "status": "True"}])
    status = status_of(job, *(pod.running() for pod in pods_of(job.job())))
    assert (status["state"], status["phase"], status["reason"]) == ("", "", "")
    assert status["conditions"] == [{"type": "Created", "status": "True"}]
    assert status["replicaStatuses"]["Worker"] == counts(2, pending=2)


def test_a_job_of_any_framework() -> None:
    resource = {
        "apiVersion": "dljob.operator/v1",
        "kind": "DLJob",
        "metadata": {"name": "digits", "namespace": "default", "uid": UID, "generation": 1},
        "spec": {"framework": "pytorch", "replicas": {"Worker": {"count": 2, "image": "train:1"}}},
    }
    status = job_status(resource, any_framework.adapt(PYTORCH), [], NOW)
    assert status["replicaStatuses"] == {"Worker": counts(2, pending=2)}


# --- the counts, read back


@pytest.mark.parametrize(
    ("job", "status", "worker"),
    [
        (digits(), {"Worker": {"active": 1, "succeeded": 2, "failed": 1}}, counts(2, active=1, succeeded=2, failed=1)),
        (digits(), {"Worker": {"active": -1, "failed": "2", "succeeded": None}}, counts(2, pending=2)),
        (digits(), {"Worker": None}, counts(2, pending=2)),
        (digits(), [{"Worker": {"active": 1}}], counts(2, pending=2)),
        (
            digits("v1alpha1"),
            [
                {"mx_replica_type": "SCHEDULER", "ReplicasStates": {"Running": 5}},
                {"mx_replica_type": "worker", "ReplicasStates": {"Running": 1, "Pending": 3}},
            ],
            counts(2, active=1, pending=1),
        ),
        (digits("v1alpha1"), [None, {"mx_replica_type": "WORKER"}], counts(2, pending=2)),
        (digits("v1alpha1"), {"Worker": {"active": 1}}, counts(2, pending=2)),
        (digits("mpba"), [{"mx_replica_type": "WORKER", "ReplicasStates": {"Failed": 2}}], counts(2, failed=2)),
    ],
)
def test_the_counts_that_a_peer_wrote(job: MXJob, status: Any, worker: dict[str, int]) -> None:
    assert replica_counts(job.job(), {"replicaStatuses": status})["Worker"] == worker


@pytest.mark.parametrize(
    ("status", "worker"),
    [
        ({"replicas": "2/3", "replicaStatuses": {"active": 3}}, counts(3, active=2, pending=1)),
        (
            {"replicas": "2/3", "replicaStatuses": {"active": 2, "succeeded": 1}},
            counts(3, active=1, succeeded=1, pending=1),
        ),
        ({"replicas": "1/3", "replicaStatuses": {"succeeded": 2}}, counts(3, succeeded=2, pending=1)),
        ({"replicas": "all", "replicaStatuses": {"active": 3}}, counts(3, active=3)),
        ({"replicaStatuses": {"active": 3}}, counts(3, active=3)),
    ],
)
def test_the_counts_of_the_only_type(status: dict[str, Any], worker: dict[str, int]) -> None:
    assert replica_counts(parse_job(caffe2job(3), CAFFE2), status) == {"Worker": worker}


def test_only_the_layout_of_one_type_has_the_active_ones_in_the_summary() -> None:
    status = {"replicas": "3/3", "replicaStatuses": {"Worker": {"active": 1}}}
    assert replica_counts(digits().job(), status)["Worker"] == counts(2, active=1, pending=1)


# --- which pods are the job's


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"ownerReferences": [CONTROLLER]}, True),
        ({"ownerReferences": [CONTROLLER], "namespace": "default"}, True),
        ({"ownerReferences": [{**CONTROLLER, "uid": "x"}], "labels": OF_THE_JOB}, False),
        ({"ownerReferences": [{**CONTROLLER, "controller": False}], "labels": OF_THE_JOB}, False),
        ({"ownerReferences": [BATCH_JOB], "labels": OF_THE_JOB}, True),
        ({"ownerReferences": [BATCH_JOB]}, False),
        ({"ownerReferences": [{**BATCH_JOB, "controller": False}], "labels": OF_THE_JOB}, False),
        ({"ownerReferences": [{**BATCH_JOB, "apiVersion": "x/v1"}], "labels": OF_THE_JOB}, False),
        ({"ownerReferences": [None, BATCH_JOB], "labels": OF_THE_JOB}, True),
        ({"ownerReferences": "x", "labels": OF_THE_JOB}, False),
        ({"labels": OF_THE_JOB}, True),
        ({"labels": {"dljob.operator/job-uid": "x"}}, False),
        ({}, False),
        (None, False),
    ],
)
def test_whether_a_pod_is_the_jobs(metadata: Any, expected: bool) -> None:
    assert belongs({"metadata": metadata}, UID) is expected


def test_no_pod_is_that_of_a_job_without_a_uid() -> None:
    assert not belongs({"metadata": {"labels": {"dljob.operator/job-uid": ""}}}, "")


def without_owner(pod: Pod) -> Pod:
    return pod.change(lambda made: made["metadata"].pop("ownerReferences"))


def test_pods_of_other_jobs_do_not_count() -> None:
    other = mxjob("digits").workers(2).uid("another-uid")
    foreign = [pod.failed(1) for pod in pods_of(other.job())]
    own = [pod.running() for pod in pods_of(digits().job())]
    status = status_of(digits(), *foreign, *own)
    assert (status["state"], status["replicaStatuses"]["Worker"]) == ("Running", counts(2, active=2))
    unowned = [without_owner(pod) for pod in own]
    assert status_of(digits(), *foreign, *unowned) == status


def written(flavor: str = "v1", **metadata: Any) -> Resource:
    """A job as its author has it, without a uid."""
    return {**digits(flavor).resource(), "metadata": {"name": "digits", **metadata}}


@pytest.mark.parametrize("metadata", [{}, {"namespace": "default"}])
@pytest.mark.parametrize("owned", [True, False])
@pytest.mark.parametrize("flavor", FLAVORS)
def test_a_manifest_without_a_uid(flavor: str, owned: bool, metadata: dict[str, Any]) -> None:
    made = [pod.running() for pod in pods_of(digits(flavor).job())]
    foreign = [pod.failed(1) for pod in pods_of(mxjob("other").flavor(flavor).uid("another-uid").job())]
    pods = [pod.resource() for pod in (*foreign, *(made if owned else map(without_owner, made)))]
    assert uid_of(written(flavor, **metadata), MXNET, pods) == UID
    status = job_status(written(flavor, **metadata), MXNET, pods, NOW)
    assert status["replicaStatuses"]["Worker"] == counts(2, active=2)


def test_a_manifest_without_a_namespace_has_its_pods_in_any() -> None:
    pods = [pod.running().resource() for pod in pods_of(digits().job())]
    for pod in pods:
        pod["metadata"]["namespace"] = "far"
    assert job_status(written(), MXNET, pods, NOW)["replicaStatuses"]["Worker"] == counts(2, active=2)


def test_the_uid_of_a_manifest_comes_before_that_of_its_pods() -> None:
    pods = [pod.resource() for pod in pods_of(digits().job())]
    assert uid_of(written(uid="another-uid"), MXNET, pods) == "another-uid"


@pytest.mark.parametrize(
    ("change", "uid"),
    [
        ({}, UID),
        ({"kind": "TFJob"}, ""),
        ({"name": "other"}, ""),
        ({"apiVersion": "example.com/v1"}, ""),
        ({"apiVersion": "kubeflow.org/v2"}, UID),
        ({"controller": False}, ""),
    ],
)
def test_the_job_of_a_pod_by_its_controller(change: dict[str, Any], uid: str) -> None:
    other = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "a-node"}
    pod = {"metadata": {"ownerReferences": [other, {**CONTROLLER, **change}], "labels": {"mxnet_job_name": "digits"}}}
    assert uid_of(written(), MXNET, [pod]) == uid


OF_CAFFE2 = {**caffe2job(2), "metadata": {"name": "example-job", "namespace": "default"}}


@pytest.mark.parametrize(
    ("resource", "framework", "labels", "uid"),
    [
        (written(), MXNET, {"training.kubeflow.org/job-name": "digits"}, UID),
        (written(), MXNET, {"training.kubeflow.org/job-name": "other"}, ""),
        (written(), MXNET, {}, ""),
        (OF_CAFFE2, CAFFE2, {"caffe2_job_key": "default-example-job"}, UID),
        (OF_CAFFE2, CAFFE2, {"caffe2_job_key": "far-example-job"}, ""),
        (OF_CAFFE2, CAFFE2, {"group_name": "kubeflow.org", "caffe2_job_key": "default-other"}, ""),
    ],
)
def test_the_job_of_a_pod_without_owners_by_its_labels(
    resource: Resource, framework: Framework, labels: dict[str, str], uid: str
) -> None:
    pod = {"metadata": {"namespace": "default", "labels": {**OF_THE_JOB, **labels}}}
    assert uid_of(resource, framework, [pod]) == uid


def test_a_pod_without_a_namespace_and_without_the_label_of_its_job() -> None:
    unnamed = {"metadata": {"labels": {**OF_THE_JOB, "caffe2_job_key": "-example-job"}}}
    assert uid_of(OF_CAFFE2, CAFFE2, [unnamed]) == UID
    assert uid_of({**OF_CAFFE2, "metadata": {"name": "example-job"}}, CAFFE2, [unnamed]) == UID
    unlabeled = {"metadata": {"labels": {"training.kubeflow.org/job-name": "digits"}}}
    assert uid_of(written(), MXNET, [unlabeled]) == ""


def test_pods_of_several_jobs_of_the_name() -> None:
    here = [pod.resource() for pod in pods_of(digits().job())]
    there = copy.deepcopy([pod.resource() for pod in pods_of(digits().uid("another-uid").job())])
    for pod in there:
        pod["metadata"]["namespace"] = "far"
    message = rf"pods of 2 jobs named digits \(another-uid, {UID}\): give the job as the cluster has it"
    with pytest.raises(AmbiguousJob, match=message):
        uid_of(written(), MXNET, [*here, *there])
    assert uid_of(written(namespace="default"), MXNET, [*here, *there]) == UID
    assert uid_of(written(namespace="far"), MXNET, [*here, *there]) == "another-uid"
    assert uid_of(written(namespace="elsewhere"), MXNET, [*here, *there]) == ""


def test_a_job_without_pods_has_no_uid() -> None:
    assert uid_of(written(), MXNET, []) == ""
    assert uid_of(pytorchjob(1), PYTORCH, []) == UID
