"""Replicas that a batch Job runs: the state of such a replica, from the Job and its pods."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import Owner
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import batch_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.observed_state import build_observed_state
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.pod_ends import (
    has_failed,
    has_succeeded,
    is_done,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import FIRST_CONTAINER
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import BatchJobRef, PodState
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Deletion
from support.builders import MPI, UID, Resource, manifest_of, mpijob, stamp

OWNER = Owner("default", UID)
COMPLETE = {"type": "Complete", "status": "True"}
FAILED = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "too long"}
LIMIT = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"}


def job(*conditions: Resource, **metadata: Any) -> Resource:
    parsed = parse_job(mpijob(), MPI)
    made = dict(batch_job.wrap(parsed, manifest_of(parsed, "launcher", framework=MPI)))
    ours = {"uid": "the-job", "creationTimestamp": stamp(), **metadata}
    return {**made, "metadata": {**made["metadata"], **ours}, "status": {"conditions": list(conditions)}}


def pod(name: str, phase: str, state: Resource | None = None, seconds: float = 1, **more: Any) -> Resource:
    labels = {"dljob.operator/replica-type": "launcher"}
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-of-{name}",
            "namespace": "default",
            "labels": labels,
            "creationTimestamp": stamp(seconds),
            "ownerReferences": [{"kind": "Job", "uid": "the-job", "controller": True}],
            **more.pop("metadata", {}),
        },
        "spec": {"containers": [{"name": "main"}, {"name": "proxy"}], "restartPolicy": "Never", "nodeName": "n"},
        "status": {
            "phase": phase,
            "containerStatuses": [{"name": "main", "restartCount": 0, "state": state or {"running": {}}}],
            **more,
        },
    }


def ended(code: int) -> Resource:
    return {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": stamp(2)}}


def observed(resource: Resource, *pods: Resource) -> PodState:
    (found,) = build_observed_state(OWNER, FIRST_CONTAINER, pods, (), {"Job": [resource]}).pods
    return found


def test_the_job_that_runs_a_replica() -> None:
    parsed = parse_job(mpijob(runPolicy={"backoffLimit": 3}), MPI)
    launcher = manifest_of(parsed, "launcher", framework=MPI)
    metadata = launcher["metadata"]
    metadata["annotations"] |= {
        "dljob.operator/spec-hash": "1",
        "scheduling.k8s.io/group-name": "pi",
        "of-the-user": "a",
    }
    metadata["finalizers"] = ["example.com/a"]
    made = batch_job.wrap(parsed, launcher)
    assert made == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "pi-launcher",
            "namespace": "default",
            "labels": metadata["labels"],
            "ownerReferences": metadata["ownerReferences"],
            "annotations": {"dljob.operator/spec-hash": "1", "scheduling.k8s.io/group-name": "pi"},
        },
        "spec": {
            "backoffLimit": 3,
            "podReplacementPolicy": "Failed",
            "template": {
                "metadata": {name: metadata[name] for name in ("labels", "annotations", "finalizers")},
                "spec": launcher["spec"],
            },
        },
    }
    assert "backoffLimit" not in batch_job.wrap(parse_job(mpijob(), MPI), launcher)["spec"]


def test_the_pod_of_a_replica_with_and_without_a_job() -> None:
    parsed = parse_job(mpijob(), MPI)
    launcher = manifest_of(parsed, "launcher", framework=MPI)
    made = batch_job.wrap(parsed, launcher)
    other = {"metadata": {"labels": {"a": "b"}}, "spec": {}}
    assert batch_job.pod_of(made)["spec"] == launcher["spec"]
    assert batch_job.with_pod(made, other) == {**made, "spec": {**made["spec"], "template": other}}
    assert batch_job.pod_of(launcher) == launcher
    assert batch_job.with_pod(launcher, other) == other


def test_a_job_without_a_pod_is_pending() -> None:
    found = observed(job())
    assert (found.type, found.index, found.phase, found.name) == ("launcher", 0, "Pending", "pi-launcher")
    assert (found.pending_since, found.lacks_pod_since) == ("", stamp())
    assert found.is_active


def test_the_newest_pod_counts() -> None:
    first, second = pod("a", "Failed", ended(1), 1), pod("b", "Running", seconds=5)
    found = observed(job(), second, first)
    assert (found.name, found.uid, found.phase, found.node) == ("b", "uid-of-b", "Running", "n")
    assert found.batch_job == BatchJobRef("pi-launcher", "the-job")
    assert not has_failed(found)


def test_a_pod_that_terminates_is_not_the_newest() -> None:
    leaving = {"deletionTimestamp": stamp(9)}
    found = observed(job(), pod("a", "Running", seconds=9, metadata=leaving), pod("b", "Running", seconds=1))
    assert (found.name, found.deleting) == ("b", "")
    assert observed(job(), pod("a", "Running", metadata=leaving)).phase == "Pending", "its Job makes another one"


@pytest.mark.parametrize("phase", ["Running", "Failed"])
def test_a_failed_pod_is_no_failure_before_the_jobs(phase: str) -> None:
    found = observed(job(), pod("a", phase, ended(1)))
    assert not has_failed(found)
    assert not has_succeeded(found)
    assert found.is_active


def test_the_metadata_of_the_job_count_whatever_those_of_its_pod_are() -> None:
    labels = {
        "dljob.operator/replica-type": "worker",
        "dljob.operator/replica-index": "2",
        "dljob.operator/attempt": "3",
    }
    resource = job(labels=labels, annotations={"dljob.operator/spec-hash": "the-job's"})
    other = {
        "labels": dict.fromkeys(labels, "7"),
        "annotations": {"dljob.operator/spec-hash": "the-pod's"},
        "creationTimestamp": stamp(5),
    }
    found = observed(resource, pod("a", "Running", metadata=other))
    assert (found.type, found.index, found.attempt) == ("worker", 2, 3)
    assert (found.spec_hash, found.created) == ("the-job's", stamp())
    resource["metadata"]["deletionTimestamp"] = stamp(9)
    found = observed(resource, pod("a", "Running"))
    assert (found.deleting, found.terminating) == (stamp(9), ""), "its pod runs until the Job is gone"
    assert (observed(resource).deleting, observed(resource).terminating) == (stamp(9), "")


def test_restarts_of_the_container_are_not_the_replicas() -> None:
    restarted = pod("a", "Running")
    restarted["status"]["containerStatuses"][0]["restartCount"] = 2
    assert observed(job(), restarted).restarts == 0


def test_a_replica_is_ready_while_its_pod_is_and_stays() -> None:
    ready = [{"type": "Ready", "status": "True"}]
    assert observed(job(), pod("a", "Running", conditions=ready)).is_ready
    assert not observed(job(), pod("a", "Running")).is_ready
    leaving = pod("a", "Running", conditions=ready, metadata={"deletionTimestamp": stamp(9)})
    assert not observed(job(), leaving).is_ready


def test_what_a_pod_waits_for_counts_until_the_job_ends() -> None:
    waiting = pod("a", "Pending", {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}})
    found = observed(job(), waiting)
    assert (found.waiting, found.pending_since) == ("ImagePullBackOff: no such image", stamp(1))
    over = observed(job(FAILED), waiting)
    assert (over.waiting, over.pending_since) == ("", "")


@pytest.mark.parametrize("condition", [{**FAILED, "status": "False"}, {**COMPLETE, "type": "SuccessCriteriaMet"}])
def test_conditions_that_do_not_end_a_job(condition: Resource) -> None:
    found = observed(job(condition), pod("a", "Running"))
    assert (found.phase, found.reason, found.message) == ("Running", "", "")
    assert found.is_active


def test_a_failed_job() -> None:
    found = observed(job(LIMIT), pod("a", "Failed", ended(7)))
    assert has_failed(found)
    assert found.ended is not None
    assert (found.ended.code, found.reason, found.message) == (7, "BackoffLimitExceeded", "too often")
    assert not found.is_active


def test_a_job_that_failed_beside_a_pod_that_exited_with_0() -> None:
    """As by the deadline: the program heard the signal and ended well."""
    found = observed(job(FAILED), pod("a", "Failed", ended(0)))
    assert has_failed(found)
    assert (found.ended, found.reason) == (None, "DeadlineExceeded")


def test_the_cause_of_the_last_pods_end() -> None:
    evicted = pod(
        "a", "Failed", ended(137), reason="Evicted", conditions=[{"type": "DisruptionTarget", "status": "True"}]
    )
    found = observed(job(LIMIT), evicted)
    assert found.reason == "BackoffLimitExceeded/Evicted"
    assert not found.disrupted, "the Job has tried again as often as it may"


def test_a_complete_job() -> None:
    found = observed(job({**COMPLETE, "reason": "CompletionsReached", "message": "all pods are done"}))
    assert is_done(found)
    assert not found.is_active
    assert (found.reason, found.message) == ("", "")


def test_the_exit_of_the_program_counts_while_a_sidecar_runs() -> None:
    running = pod("a", "Running", ended(0))
    running["status"]["containerStatuses"].append({"name": "proxy", "state": {"running": {}}})
    found = observed(job(), running)
    assert is_done(found)
    assert found.is_active, "it holds resources still"


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
def test_the_exit_of_the_last_container_counts_once_the_job_is_complete(phase: str) -> None:
    """Kueue suspends a Job that is active when its MPIJob has succeeded. The kubelet reports the phase last."""
    exited = pod("a", phase, ended(0))
    found = observed(job(), exited)
    assert not has_succeeded(found)
    assert not has_failed(found)
    assert found.phase == "Running"
    assert is_done(observed(job(COMPLETE), exited))


def test_pods_and_jobs_of_others() -> None:
    stranger = pod("a", "Running", metadata={"ownerReferences": [{"uid": "the-job", "controller": False}]})
    assert observed(job(), stranger).phase == "Pending"
    foreign = job(ownerReferences=[{"uid": "else", "controller": True}])
    of_a_hook = job(labels={"dljob.operator/job-uid": UID})
    of_another_hook = job(labels={"dljob.operator/job-uid": UID, "dljob.operator/replica-type": "launcher"})
    for resource in (foreign, of_a_hook, of_another_hook):
        assert build_observed_state(OWNER, FIRST_CONTAINER, [pod("a", "Running")], (), {"Job": [resource]}).pods == ()


def test_what_is_deleted() -> None:
    assert batch_job.deletion(observed(job(), pod("a", "Running"))) == Deletion(
        "Job", "pi-launcher", "the-job", "batch/v1"
    )
