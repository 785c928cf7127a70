"""Building the observed state from API objects."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import Owner
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.observed_state import build_observed_state
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import FIRST_CONTAINER
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import (
    ContainerFailure,
    OwnedObject,
    PodState,
    Termination,
)
from support.builders import NOW, UID, mxjob, pod_of, stamp

OWNER = {"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "name": "digits", "uid": UID, "controller": True}


def view(status: dict[str, Any] | None = None, **metadata: Any) -> PodState:
    pod: dict[str, Any] = {"metadata": {"name": "p", "uid": "1", "ownerReferences": [OWNER], **metadata}}
    if status is not None:
        pod["status"] = status
    return build_observed_state(Owner("default", UID), "mxnet", [pod], []).pods[0]


def container(
    name: str = "mxnet", restarts: int = 0, last: dict[str, Any] | None = None, **state: Any
) -> dict[str, Any]:
    return {"name": name, "restartCount": restarts, "state": state, **({"lastState": last} if last else {})}


def end(code: int, reason: str = "Error", message: str = "") -> dict[str, Any]:
    return {"exitCode": code, "reason": reason, "message": message, "finishedAt": stamp()}


def test_a_pod_of_the_operator() -> None:
    job = mxjob("digits").v1().workers(3).restart("OnFailure").job()
    made = pod_of(job, "worker", 2, attempt=1).running().change(lambda p: p["spec"].update(nodeName="n1"))
    seen = made.view()
    assert (seen.name, seen.type, seen.index, seen.attempt) == ("digits-worker-2", "worker", 2, 1)
    assert (seen.phase, seen.node, seen.restart_policy) == ("Running", "n1", "OnFailure")
    assert seen.spec_hash == made.resource()["metadata"]["annotations"]["dljob.operator/spec-hash"]
    assert seen.created == stamp()
    assert (seen.deleting, seen.ended, seen.terminated, seen.disrupted, seen.waiting) == ("", None, False, False, "")
    assert seen.is_active


MINIMAL = PodState(
    name="",
    uid="",
    type="",
    index=0,
    attempt=0,
    phase="Pending",
    created="",
    deleting="",
    spec_hash="",
    shared="",
    node="",
    restarts=0,
    restart_policy="Always",
    container="mxnet",
    ended=None,
    terminated=False,
    is_ready=False,
    is_active=True,
    reason="",
    message="",
    waiting="",
    pending_since="",
    disrupted=False,
)


@pytest.mark.parametrize(
    "pod",
    [
        {"metadata": {}},
        {"metadata": {"labels": None, "annotations": None}, "spec": None, "status": None},
        {"metadata": {"labels": {}, "annotations": {}}, "spec": {}, "status": {"conditions": None}},
        {"metadata": {}, "status": {"containerStatuses": None, "initContainerStatuses": None}},
        {"metadata": {}, "status": {"containerStatuses": [{}], "conditions": [{}]}},
    ],
)
def test_a_minimal_pod(pod: dict[str, Any]) -> None:
    pod["metadata"]["ownerReferences"] = [OWNER]
    (seen,) = build_observed_state(Owner("default", UID), "mxnet", [pod], []).pods
    assert dataclasses.replace(seen, conditions=()) == MINIMAL
    assert seen.conditions in ((), (("", ""),))


def test_a_pod_with_everything() -> None:
    labels = {"replica-type": "worker", "replica-index": "12", "attempt": "3", "replica-group": "large"}
    annotations = {"spec-hash": "4f", "shared-environment": "env-1"}
    sidecar = container("sidecar", terminated={"exitCode": 4})
    pod = {
        "metadata": {
            "name": "p",
            "uid": "1",
            "namespace": "default",
            "ownerReferences": [OWNER],
            "creationTimestamp": stamp(),
            "deletionTimestamp": stamp(30),
            "labels": {f"dljob.operator/{name}": value for name, value in labels.items()},
            "annotations": {f"dljob.operator/{name}": value for name, value in annotations.items()},
        },
        "spec": {"nodeName": "n1", "restartPolicy": "Never"},
        "status": {
            "phase": "Failed",
            "reason": "Evicted",
            "message": "low on memory",
            "conditions": [{"type": "DisruptionTarget", "status": "True"}, {"type": "Ready", "status": "True"}],
            "containerStatuses": [sidecar, container(restarts=2, terminated=end(3, "Error", "\n last words\n"))],
            "initContainerStatuses": [container("init", terminated=end(7)), container("ok", terminated=end(0))],
        },
    }
    (seen,) = build_observed_state(Owner("default", UID), "mxnet", [pod], []).pods
    assert seen == PodState(
        name="p",
        uid="1",
        type="worker",
        index=12,
        attempt=3,
        phase="Failed",
        created=stamp(),
        deleting=stamp(30),
        terminating=stamp(30),
        spec_hash="4f",
        shared="env-1",
        node="n1",
        restarts=2,
        restart_policy="Never",
        container="mxnet",
        ended=Termination(3, "Error", "last words", stamp()),
        terminated=True,
        is_ready=True,
        is_active=False,
        reason="Evicted",
        message="low on memory",
        waiting="",
        pending_since="",
        disrupted=True,
        conditions=(("DisruptionTarget", "True"), ("Ready", "True")),
        failed_containers=(
            ContainerFailure("sidecar", 4, ""),
            ContainerFailure("mxnet", 3, "Error"),
            ContainerFailure("init", 7, "Error"),
        ),
        group="large",
        has_run=True,
    )


def test_an_end_without_details() -> None:
    seen = view({"phase": "Failed", "containerStatuses": [container(terminated={"exitCode": 1})]})
    assert (seen.ended, seen.failed_containers) == (Termination(1, "", "", ""), (ContainerFailure("mxnet", 1, ""),))
    succeeded = view({"phase": "Succeeded", "containerStatuses": [container(terminated={"startedAt": stamp()})]})
    assert (succeeded.ended, succeeded.failed_containers) == (Termination(0, "", "", "", stamp()), ())


def test_other_objects_by_kind_and_name() -> None:
    annotations = {"dljob.operator/spec-hash": "4f", "dljob.operator/lifetime": "job"}

    def made(name: str, **metadata: Any) -> dict[str, Any]:
        return {"metadata": {"name": name, "ownerReferences": [OWNER], **metadata}}

    foreign = {"metadata": {"name": "foreign", "uid": "9"}}
    others = {
        "ConfigMap": [made("c", uid="1", annotations=annotations), foreign],
        "Deployment": [made("d", annotations=None)],
    }
    seen = build_observed_state(Owner("default", UID), "mxnet", [], [made("s", uid="2"), made("t"), foreign], others)
    assert seen.services == {"s": "2", "t": ""}
    assert seen.owned_objects == {
        ("ConfigMap", "c"): OwnedObject("1", "4f", "job"),
        ("Deployment", "d"): OwnedObject(""),
        ("Service", "s"): OwnedObject("2"),
        ("Service", "t"): OwnedObject(""),
    }


def test_a_framework_without_a_container_name_means_the_first() -> None:
    statuses = [container("b", restarts=3, running={}), container("a", restarts=1, terminated=end(5))]
    pod = {
        "metadata": {"ownerReferences": [OWNER]},
        "spec": {"containers": [{"name": "a"}, {"name": "b"}]},
        "status": {"phase": "Running", "containerStatuses": statuses},
    }
    (seen,) = build_observed_state(Owner("default", UID), FIRST_CONTAINER, [pod], []).pods
    assert (seen.container, seen.restarts, seen.ended and seen.ended.code) == ("a", 1, 5)
    (bare,) = build_observed_state(Owner("default", UID), FIRST_CONTAINER, [{**pod, "spec": {}}], []).pods
    assert (bare.container, bare.restarts, bare.ended) == ("", 0, None)


@pytest.mark.parametrize(
    ("own", "described"),
    [
        pytest.param(container(running={}), "mxnet", id="it runs"),
        pytest.param(container(terminated=end(0)), "mxnet", id="it has ended"),
        pytest.param(container(restarts=1, waiting={}), "mxnet", id="it has been restarted"),
        pytest.param(container(waiting={}), "sidecar", id="it has not run"),
    ],
)
def test_of_a_failed_pod_another_container_counts_only_if_the_frameworks_has_not_run(
    own: dict[str, Any], described: str
) -> None:
    statuses = [own, container("sidecar", terminated=end(4))]
    assert view({"phase": "Failed", "containerStatuses": statuses}).container == described
    assert view({"phase": "Running", "containerStatuses": statuses}).container == "mxnet"
    assert view({"phase": "Failed", "containerStatuses": [own]}).container == "mxnet"


@pytest.mark.parametrize(("value", "number"), [("12", 12), ("0", 0), ("", 0), (None, 0), ("-1", 0), ("1.5", 0)])
def test_numbers_in_labels(value: str | None, number: int) -> None:
    assert view(labels={"dljob.operator/replica-index": value}).index == number


@pytest.mark.parametrize("label", ["", "x", "-1", "1.5", "1234567890", "9" * 63])
def test_malformed_labels(label: str) -> None:
    seen = view(labels={"dljob.operator/replica-index": label, "dljob.operator/attempt": label})
    assert (seen.index, seen.attempt) == (0, 0)


def test_objects_of_other_owners_are_ignored() -> None:
    stranger = {"metadata": {"name": "s", "uid": "2", "ownerReferences": [{**OWNER, "uid": "other"}]}}
    seen = build_observed_state(Owner("default", UID), "mxnet", [stranger, {"metadata": {"name": "t"}}], [stranger])
    assert (seen.pods, seen.services) == ((), {})


@pytest.mark.parametrize(
    ("controller", "label", "phase", "expected"),
    [
        ({}, UID, "Running", ["p"]),
        ({}, UID, "Pending", ["p"]),
        ({}, UID, "Failed", []),
        ({}, UID, "Succeeded", []),
        ({}, "another job", "Running", []),
        ({}, None, "Running", []),
        ({"kind": "ReplicaSet"}, UID, "Running", []),
        ({"apiVersion": "example.com/v1"}, UID, "Running", []),
        ({"controller": False}, UID, "Running", []),
    ],
)
def test_pods_of_a_batch_job_that_is_gone(
    controller: dict[str, Any], label: str | None, phase: str, expected: list[str]
) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "uid": "gone", "controller": True, **controller}
    labels = {"dljob.operator/job-uid": label} if label else {}
    metadata = {"name": "p", "namespace": "default", "labels": labels, "creationTimestamp": "2026-01-02T03:04:05Z"}
    pod = {"metadata": {**metadata, "ownerReferences": [owner]}, "status": {"phase": phase}}
    seen = build_observed_state(Owner("default", UID), "mpi", [pod], [])
    assert seen.pods == ()
    assert [(one.name, one.terminating) for one in seen.remaining] == [(x, "2026-01-02T03:04:05Z") for x in expected]
    assert build_observed_state(Owner("elsewhere", UID), "mpi", [pod], []).remaining == ()
    of_a_hook = {"metadata": {"name": "j", "uid": "gone", "namespace": "default", "ownerReferences": [OWNER]}}
    assert build_observed_state(Owner("default", UID), "mpi", [pod], [], {"Job": [of_a_hook]}).remaining == ()


def test_services_by_name() -> None:
    service = {"metadata": {"name": "s", "uid": "2", "ownerReferences": [OWNER]}}
    assert build_observed_state(Owner("default", UID), "mxnet", [], [service]).services == {"s": "2"}


def test_pods_of_a_type_in_any_case() -> None:
    job = mxjob().workers(1).job()
    seen = build_observed_state(
        Owner("default", UID), "mxnet", [pod_of(job, t).resource() for t in ("worker", "scheduler")], []
    )
    assert [p.type for p in seen.pods_of("Worker")] == ["worker"]


# --- which container describes the pod


def test_the_end_of_the_frameworks_container() -> None:
    seen = view({"phase": "Failed", "containerStatuses": [container(terminated=end(3, message=" last words\n"))]})
    assert seen.ended == Termination(3, "Error", "last words", stamp())
    assert (seen.terminated, seen.container, seen.is_active) == (True, "mxnet", False)


def test_an_end_that_the_kubelet_has_restarted_since() -> None:
    last = {"terminated": end(137, "OOMKilled")}
    seen = view({"phase": "Running", "containerStatuses": [container(restarts=2, last=last, running={})]})
    assert seen.ended and (seen.ended.code, seen.ended.reason) == (137, "OOMKilled")
    assert (seen.terminated, seen.restarts, seen.is_active) == (False, 2, True)


def test_waiting_for_its_restart_it_has_not_stopped_for_good() -> None:
    last = {"terminated": end(1)}
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 10s"}
    seen = view({"phase": "Running", "containerStatuses": [container(restarts=1, last=last, waiting=waiting)]})
    assert seen.ended and seen.ended.code == 1
    assert (seen.terminated, seen.waiting, seen.is_active) == (False, "", True)


@pytest.mark.parametrize("own", [container(running={}), container(waiting={"reason": "ContainerCreating"})])
def test_the_exit_of_a_sidecar_is_ignored(own: dict[str, Any]) -> None:
    statuses = [container("sidecar", terminated=end(1)), own]
    seen = view({"phase": "Running", "containerStatuses": statuses})
    assert (seen.ended, seen.terminated) == (None, False)


def test_an_init_container_that_will_be_tried_again_has_not_failed() -> None:
    status = {
        "phase": "Pending",
        "containerStatuses": [container(waiting={"reason": "PodInitializing"})],
        "initContainerStatuses": [container("init", terminated=end(1))],
    }
    assert view(status).ended is None


def test_a_failed_init_container_describes_the_pod() -> None:
    status = {
        "phase": "Failed",
        "containerStatuses": [container(waiting={"reason": "PodInitializing"})],
        "initContainerStatuses": [container("ready", terminated=end(0)), container("fetch", terminated=end(7))],
    }
    seen = view(status)
    assert seen.ended and seen.ended.code == 7
    assert (seen.container, seen.ended_elsewhere) == ("fetch", True)


def test_a_sidecar_that_fails_later_does_not_undo_the_programs_end() -> None:
    statuses = [container(terminated=end(0, "Completed")), container("sidecar", terminated=end(1))]
    seen = view({"phase": "Failed", "containerStatuses": statuses})
    assert seen.ended and seen.ended.code == 0
    assert not seen.ended_elsewhere
    assert seen.container == "mxnet"


def test_a_pod_that_was_rejected_by_its_node() -> None:
    seen = view({"phase": "Failed", "reason": "OutOfcpu", "message": "not enough"})
    assert (seen.ended, seen.reason, seen.message, seen.is_active) == (None, "OutOfcpu", "not enough", False)


def test_a_sidecar_keeps_a_pod_active() -> None:
    statuses = [container(terminated=end(0)), container("sidecar", running={})]
    assert view({"phase": "Running", "containerStatuses": statuses}).is_active
    assert not view({"phase": "Running", "containerStatuses": statuses[:1]}).is_active


# --- why a pod does not start


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"reason": "ImagePullBackOff", "message": "no such image"}, "ImagePullBackOff: no such image"),
        ({"reason": "CreateContainerConfigError"}, "CreateContainerConfigError"),
        ({"reason": "ContainerCreating"}, ""),
        ({"reason": "PodInitializing"}, ""),
        ({"reason": "CrashLoopBackOff"}, ""),
        ({}, ""),
    ],
)
def test_what_keeps_a_container_from_starting(state: dict[str, str], said: str) -> None:
    assert view({"phase": "Pending", "containerStatuses": [container(waiting=state)]}).waiting == said


def test_an_init_container_may_be_what_waits() -> None:
    status = {"phase": "Pending", "initContainerStatuses": [container("i", waiting={"reason": "ErrImagePull"})]}
    assert view(status).waiting == "ErrImagePull"


@pytest.mark.parametrize(
    ("status", "since"),
    [
        pytest.param({"phase": "Pending"}, stamp(), id="no node has room"),
        pytest.param({"phase": "Running"}, "", id="it has started"),
        pytest.param(
            {"phase": "Pending", "initContainerStatuses": [container("init", running={})]}, "", id="it copies data"
        ),
        pytest.param(
            {
                "phase": "Pending",
                "conditions": [{"type": "Initialized", "status": "True"}],
                "initContainerStatuses": [container("sidecar", running={})],
            },
            stamp(),
            id="a sidecar runs on",
        ),
        pytest.param(
            {
                "phase": "Pending",
                "initContainerStatuses": [
                    container("init", terminated={**end(0), "finishedAt": stamp(60)}),
                    container("next", terminated={**end(1), "finishedAt": stamp(90)}),
                ],
            },
            stamp(60),
            id="the next step after the data waits",
        ),
    ],
)
def test_since_when_a_pod_waits(status: dict[str, Any], since: str) -> None:
    assert view(status, creationTimestamp=stamp()).pending_since == since


def test_no_node_has_room() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    assert view({"phase": "Pending", "conditions": [condition]}).waiting == "Unschedulable: 0/1 nodes"
    assert view({"phase": "Pending", "conditions": [{**condition, "status": "True"}]}).waiting == ""
    bare = {"type": "PodScheduled", "status": "False"}
    assert view({"phase": "Pending", "conditions": [bare]}).waiting == "Unschedulable"


@pytest.mark.parametrize(("status", "disrupted"), [("True", True), ("False", False)])
def test_disruption(status: str, disrupted: bool) -> None:
    seen = view({"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": status}]})
    assert seen.disrupted is disrupted


def test_being_deleted() -> None:
    assert view(deletionTimestamp=stamp(30)).deleting == stamp(30)
    assert NOW.isoformat().startswith(stamp()[:19])


def test_restarts_of_a_sidecar_are_not_counted() -> None:
    statuses = [{"name": "log", "restartCount": 7}, {"name": "mxnet", "restartCount": 2}]
    init = [{"name": "init", "restartCount": 3}]
    pod = {
        "metadata": {"ownerReferences": [{"uid": UID, "controller": True}]},
        "status": {"containerStatuses": statuses},
    }
    pod["status"]["initContainerStatuses"] = init
    (seen,) = build_observed_state(Owner("default", UID), "mxnet", [pod], []).pods
    assert seen.restarts == 2
