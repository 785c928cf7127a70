"""What Kueue reads of a job and writes to it, for each kind that both it and this operator know.

Kueue suspends a new job. It admits a job with one update, which resumes it and adds to its pod templates, and evicts it
with one that suspends it and restores them. Of the status it reads `conditions` and `replicaStatuses[type].active`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Fact
from support import kinds
from support.builders import (
    MPI,
    TENSORFLOW,
    Resource,
    mpijob,
    tfjob,
)
from support.fake_cluster import FakeCluster

JOBS: dict[str, tuple[Framework, Resource]] = {
    "TFJob": (TENSORFLOW, tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=2, ps=1)),
    **kinds.plain_jobs(),
    "MPIJob": (MPI, mpijob()),
}
every_job = pytest.mark.parametrize("name", JOBS)

GATE = {"name": "kueue.x-k8s.io/topology"}
WORKLOAD = "kueue.x-k8s.io/workload"
PODSET = "kueue.x-k8s.io/podset"
INDEX = "training.kubeflow.org/replica-index"


def replicas(spec: Any) -> dict[str, Any]:
    (field,) = (name for name in spec if name.endswith("ReplicaSpecs"))
    found: dict[str, Any] = spec[field]
    return found


def admit(fake_cluster: FakeCluster, flavor: str) -> None:
    """The update by which Kueue admits a job to nodes of a resource flavor."""

    def change(spec: Any) -> None:
        spec["runPolicy"]["suspend"] = False
        for type_, replica in replicas(spec).items():
            metadata = replica["template"].setdefault("metadata", {})
            metadata.setdefault("labels", {})[PODSET] = type_.lower()
            metadata.setdefault("annotations", {})[WORKLOAD] = "workload"
            replica["template"]["spec"] |= {
                "nodeSelector": {"flavor": flavor},
                "tolerations": [{"key": flavor, "operator": "Exists"}],
                "schedulingGates": [GATE],
            }

    fake_cluster.edit(change)


def evict(fake_cluster: FakeCluster, created: Resource) -> None:
    """The update by which Kueue takes the quota away from a job: the templates as the user created them."""

    def change(spec: Any) -> None:
        spec["runPolicy"]["suspend"] = True
        for type_, replica in replicas(spec).items():
            replica["template"] = copy.deepcopy(replicas(created["spec"])[type_]["template"])

    fake_cluster.edit(change)


def changes(fake_cluster: FakeCluster) -> list[str]:
    return [event.message for event in fake_cluster.events if event.reason.endswith("Changed")]


def is_active(status: Mapping[str, Any]) -> bool:
    """Whether Kueue keeps the quota of a job that it has evicted."""
    return any(replica.get("active") for replica in status.get("replicaStatuses", {}).values())


def played(name: str) -> tuple[FakeCluster, Resource]:
    """A job in Kueue's queue and, for its eviction, the job as it was created."""
    framework, job = JOBS[name]
    created = copy.deepcopy(job)
    created["spec"].setdefault("runPolicy", {})["suspend"] = True
    fake_cluster = FakeCluster(copy.deepcopy(created), framework)
    fake_cluster.settle()
    return fake_cluster, created


def running(name: str) -> tuple[FakeCluster, Resource]:
    """The same, admitted to the nodes of flavor a, where all replicas run."""
    fake_cluster, created = played(name)
    admit(fake_cluster, "a")
    fake_cluster.start()
    return fake_cluster, created


def make_invalid(spec: Any) -> None:
    spec["runPolicy"]["backoffLimit"] = -1


@every_job
def test_a_job_in_the_queue_has_no_pods(name: str) -> None:
    fake_cluster, _ = played(name)
    assert fake_cluster.pods == {}
    assert fake_cluster.conditions == [("Created", "True"), ("Suspended", "True")]
    assert not is_active(fake_cluster.status)


@every_job
def test_every_pod_of_an_admitted_job_has_what_kueue_added(name: str) -> None:
    fake_cluster, created = played(name)
    admit(fake_cluster, "a")
    fake_cluster.settle()
    pods = list(fake_cluster.pods.values())
    assert len(pods) == sum(replica.get("replicas", 1) for replica in replicas(created["spec"]).values())
    for pod in pods:
        labels, spec = pod["metadata"]["labels"], pod["spec"]
        # mpi-operator names the type job-role, and its launcher has no index
        type_ = labels["training.kubeflow.org/job-role" if name == "MPIJob" else "training.kubeflow.org/replica-type"]
        assert labels[PODSET] == type_
        if type_ != "launcher":
            assert labels[INDEX].isdecimal(), "topology-aware scheduling places the replicas by it"
        assert pod["metadata"]["annotations"][WORKLOAD] == "workload"
        assert spec["nodeSelector"] == {"flavor": "a"}
        assert {"key": "a", "operator": "Exists"} in spec["tolerations"]
        assert spec["schedulingGates"] == [GATE]
    assert not changes(fake_cluster), "not a user's edit"


@every_job
def test_the_pods_are_ready_once_they_run(name: str) -> None:
    fake_cluster, _ = played(name)
    admit(fake_cluster, "a")
    fake_cluster.settle()
    assert ("Running", "True") not in fake_cluster.conditions
    fake_cluster.run_all()
    fake_cluster.settle()
    assert ("Running", "True") in fake_cluster.conditions
    assert is_active(fake_cluster.status)


@every_job
def test_an_evicted_job_returns_its_quota_and_starts_elsewhere(name: str) -> None:
    fake_cluster, created = running(name)
    evict(fake_cluster, created)
    first = fake_cluster.step()
    assert first.deletions
    assert first.status is None, "one write of the status for an eviction"
    assert is_active(fake_cluster.status), "the API server may refuse the deletions, or a slice may end before the last"
    assert first.requeue_after == 0, "the events of its own writes trigger no reconcile"
    fake_cluster.step()
    assert not is_active(fake_cluster.status), "the pods may terminate for long"
    assert fake_cluster.pods
    fake_cluster.settle()
    assert fake_cluster.pods == {}
    assert not is_active(fake_cluster.status)
    assert {("Suspended", "True"), ("Running", "False")} <= set(fake_cluster.conditions)
    admit(fake_cluster, "b")
    fake_cluster.start()
    assert [pod["spec"]["nodeSelector"] for pod in fake_cluster.pods.values()] == [{"flavor": "b"}] * len(
        fake_cluster.pods
    )
    assert not any("a" in {t["key"] for t in pod["spec"]["tolerations"]} for pod in fake_cluster.pods.values())
    assert {("Suspended", "False"), ("Running", "True")} <= set(fake_cluster.conditions)
    assert not fake_cluster.status.get("retries"), "an eviction by Kueue is no failure"
    assert not changes(fake_cluster), "not a user's edit"


@every_job
def test_an_eviction_that_the_operator_sees_only_with_the_next_admission(name: str) -> None:
    """The operator was not running in between: pods on the nodes of the old flavor must not stay."""
    fake_cluster, created = running(name)
    evict(fake_cluster, created)
    admit(fake_cluster, "b")
    fake_cluster.start()
    assert [pod["spec"]["nodeSelector"] for pod in fake_cluster.pods.values()] == [{"flavor": "b"}] * len(
        fake_cluster.pods
    )


@every_job
def test_a_place_elsewhere_and_the_same_place_give_a_job_as_many_retries(name: str) -> None:
    for flavor in ("a", "b"):
        fake_cluster, created = running(name)
        fake_cluster.resource["status"] |= {"retries": {"worker-0": 2}}
        evict(fake_cluster, created)
        fake_cluster.settle()
        admit(fake_cluster, flavor)
        fake_cluster.start()
        assert not fake_cluster.status.get("retries"), flavor


@every_job
def test_a_job_that_an_edit_has_made_invalid_returns_its_quota(name: str) -> None:
    """Its tenant could hold the quota forever, or run what Kueue does not count."""
    fake_cluster, created = running(name)
    fake_cluster.edit(make_invalid)
    fake_cluster.settle()
    assert fake_cluster.pods, "it keeps the pods of its last valid spec"
    evict(fake_cluster, created)
    first = fake_cluster.step()
    assert (bool(first.presumed(Fact.SPEC_IS_CURRENT)), first.requeue_after) == (True, 0)
    assert is_active(fake_cluster.status)
    fake_cluster.step()
    assert not is_active(fake_cluster.status)
    fake_cluster.settle()
    assert fake_cluster.pods == {}
    assert not is_active(fake_cluster.status)
    assert {("Suspended", "True"), ("Running", "False")} <= set(fake_cluster.conditions)
    assert (fake_cluster.status["state"], fake_cluster.status["replicas"][:2]) == ("Suspended", "0/")
    assert "backoffLimit" in fake_cluster.status["reason"]
    assert not fake_cluster.planned().status, "it rests"
    fake_cluster.edit(lambda spec: spec["runPolicy"].pop("backoffLimit"))
    admit(fake_cluster, "b")
    fake_cluster.start()
    assert {("Suspended", "False"), ("Running", "True")} <= set(fake_cluster.conditions)
    assert not fake_cluster.status["reason"]


@every_job
def test_an_invalid_job_that_is_resumed_fails(name: str) -> None:
    fake_cluster, created = running(name)
    fake_cluster.edit(make_invalid)
    evict(fake_cluster, created)
    fake_cluster.settle()
    admit(fake_cluster, "a")
    fake_cluster.settle()
    assert (fake_cluster.status["state"], fake_cluster.pods) == ("Failed", {})


@every_job
@pytest.mark.parametrize("queue", ["", "lab"])
def test_a_job_that_failed_by_its_spec_uses_no_quota_that_kueue_has_given_to_another(name: str, queue: str) -> None:
    fake_cluster, _ = played(name)
    if queue:
        fake_cluster.resource["metadata"].setdefault("labels", {})["kueue.x-k8s.io/queue-name"] = queue
    fake_cluster.edit(lambda spec: spec["runPolicy"].update(suspend=False, backoffLimit=-1))
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Failed"
    assert ("delete it and create it again" in fake_cluster.status["reason"]) == bool(queue)
    fake_cluster.edit(lambda spec: spec["runPolicy"].pop("backoffLimit"))
    fake_cluster.settle()
    assert bool(fake_cluster.pods) == (not queue)
    assert (fake_cluster.status["state"] == "Failed") == bool(queue)


def test_a_mended_job_that_stays_failed_keeps_its_time_to_live_and_gets_no_tensorboard() -> None:
    job = tfjob(master=1, worker=1)
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "lab"}
    job["spec"] |= {
        "tensorboard": {"logDir": "/logs"},
        "runPolicy": {"ttlSecondsAfterFinished": 60, "backoffLimit": -1},
    }
    fake_cluster = FakeCluster(job, TENSORFLOW)
    fake_cluster.settle()
    fake_cluster.advance(20)
    fake_cluster.edit(lambda spec: spec["runPolicy"].pop("backoffLimit"))
    fake_cluster.settle()
    assert fake_cluster.others["Deployment"] == {}
    assert fake_cluster.planned().requeue_after == 40
    fake_cluster.advance(40)
    assert fake_cluster.planned().delete_job


@pytest.mark.parametrize("is_valid", [True, False])
def test_a_job_that_is_resumed_before_the_last_deletion_starts_all_replicas_again(is_valid: bool) -> None:
    fake_cluster, created = running("PyTorchJob")
    fake_cluster.exit("worker", 0, 0)
    fake_cluster.settle()
    assert fake_cluster.status["completed"] == {"worker": "0"}
    fake_cluster.resource["status"] |= {"retries": {"worker-1": 2}}
    if not is_valid:
        fake_cluster.edit(make_invalid)
    evict(fake_cluster, created)
    first = fake_cluster.step()
    assert not first.deletions, "were they first, a job that is resumed would have the status and lack the pod"
    assert "completed" not in fake_cluster.status
    second = fake_cluster.step(status_gets_lost=True)
    assert len(second.deletions) == 3
    assert is_active(fake_cluster.status)
    assert fake_cluster.status["retries"] == {"worker-1": 2}, "a pod that a denied request leaves has this attempt"
    fake_cluster.edit(lambda spec: spec["runPolicy"].pop("backoffLimit", None))
    admit(fake_cluster, "a")
    fake_cluster.settle()
    assert len(fake_cluster.pods) == 3


@every_job
@pytest.mark.parametrize("has_begun", [True, False])
def test_a_beginning_that_was_not_recorded_before_an_edit_made_the_job_invalid(name: str, has_begun: bool) -> None:
    """Its pods are not scheduled yet, so that they are gone at once; without a record the job would fail then."""
    fake_cluster, created = played(name)
    if has_begun:
        admit(fake_cluster, "a")
        fake_cluster.start()
        evict(fake_cluster, created)
        fake_cluster.settle()
    admit(fake_cluster, "a")
    fake_cluster.step(status_gets_lost=True)
    assert fake_cluster.pods
    assert ("Suspended", "True") in fake_cluster.conditions
    began = min(pod["metadata"]["creationTimestamp"] for pod in fake_cluster.pods.values())
    fake_cluster.advance(60)
    fake_cluster.edit(make_invalid)
    evict(fake_cluster, created)
    fake_cluster.step()
    assert (fake_cluster.status["startTime"], ("Suspended", "False") in fake_cluster.conditions) == (began, True)
    fake_cluster.step()
    fake_cluster.kubelet_deletes()
    fake_cluster.settle()
    assert (fake_cluster.status["state"], fake_cluster.pods) == ("Suspended", {})
