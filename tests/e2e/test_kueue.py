"""Jobs of every kind in queues of a real Kueue, by the Workloads that the operator creates.

`tests/unit/api/test_queueing.py` has the rarer cases.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes import client
from support.kueue import condition
from support.kueue_jobs import JOBS, PRIORITY, Place, all_terminate, manifest_of, pods_of, says
from support.kueue_jobs import place as place_
from support.live_jobs import Resource

pytestmark = [pytest.mark.serial, pytest.mark.full]

TOPOLOGY = "kueue.x-k8s.io/podset-required-topology"
WAITS = {
    "timeout": "20s",
    "blockAdmission": False,
    "requeuingStrategy": {"backoffBaseSeconds": 1, "backoffLimitCount": 1},
}


@pytest.fixture(scope="module")
def place(
    cluster: Path, crds: None, api: client.ApiClient, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("kueue")
    with place_(cluster, api, folder, ["--kueue", "workloads"], waitForPodsReady=WAITS) as here:
        yield here


@pytest.mark.parametrize("kind", JOBS)
def test_two_jobs_in_a_quota_for_one(place: Place, kind: str) -> None:
    queue = f"two-{kind.lower()}"
    place.queue(queue)
    one = place.create(kind, f"one-{kind.lower()}", queue)
    running = place.wait_running(one)
    assert all(pod["spec"]["nodeName"].startswith(place.namespace) for pod in running)
    two = place.create(kind, f"two-{kind.lower()}", queue)
    two.wait(lambda status: says(status, f"Waits in the queue {queue}: couldn't assign flavors"), "it says why")
    assert pods_of(place.here, two) == []
    place.exit(running)
    assert one.wait_end()["state"] == "Succeeded"
    assert condition(place.wait_workload(one, "Finished"), "Finished")["reason"] == "Succeeded"
    place.wait_running(two)
    place.wait_used(queue, 3)
    two.delete()
    two.wait_deleted()
    place.wait_used(queue, 0)
    one.delete()


@pytest.mark.parametrize("kind", ["MXJob", "DLJob", "MPIJob"])
def test_a_higher_priority_evicts_and_the_job_comes_back(place: Place, kind: str) -> None:
    queue, high = f"preempt-{kind.lower()}", f"high-{kind.lower()}"
    place.kueue.priority(high, 1000)
    place.queue(queue, preemption={"withinClusterQueue": "LowerPriority"})
    low = place.create(kind, f"low-{kind.lower()}", queue)
    before = {pod["metadata"]["uid"] for pod in place.wait_running(low)}
    urgent = place.create(kind, high, queue, **{PRIORITY: high})
    low.wait(lambda status: says(status, f"Waits in the queue {queue} again: Preempted"), "it says that it is evicted")
    running = place.wait_running(urgent)
    assert all_terminate(pods_of(place.here, low)), "its quota was given away while its pods were there"
    place.exit(running)
    assert urgent.wait_end()["state"] == "Succeeded"
    after = {pod["metadata"]["uid"] for pod in place.wait_running(low)}
    assert not before & after
    place.exit(pods_of(place.here, low))
    status = low.wait_end()
    assert (status["state"], status.get("retries")) == ("Succeeded", None)
    place.wait_used(queue, 0)


def test_pods_that_do_not_start_give_the_quota_back(place: Place) -> None:
    """Kueue waits for the pods twice, with a pause between, and then deactivates the Workload."""
    place.kueue.flavor("nowhere", nodeLabels={"dljob-test/nodes": "nowhere"})
    place.kueue.cluster_queue("nowhere", {"nowhere": {"cpu": "3"}})
    place.kueue.local_queue(place.namespace, "nowhere", "nowhere")
    job = place.create("XGBoostJob", "nowhere", "nowhere")
    place.wait_workload(job, "Evicted", reason="PodsReadyTimeout")
    place.wait_workload(job, "QuotaReserved", "False")
    status = job.wait(
        lambda status: says(status, "Kueue has deactivated its Workload"), "it says that it is deactivated"
    )
    assert all_terminate(pods_of(place.here, job))
    assert status["phase"] == "Suspended"
    place.wait_used("nowhere", 0)
    job.delete()


@pytest.mark.parametrize("kind", ["MXJob", "PyTorchJob"])
def test_a_topology_keeps_the_workers_together(place: Place, kind: str) -> None:
    name = f"topology-{kind.lower()}"
    place.kueue.topology(name, "kubernetes.io/hostname")
    place.queue(name, topologyName=name)
    manifest = manifest_of(kind, name, name)
    (field,) = (field for field in manifest["spec"] if field.endswith("ReplicaSpecs"))
    worker = manifest["spec"][field]["Worker"]["template"]
    worker["metadata"] = {"annotations": {TOPOLOGY: "kubernetes.io/hostname"}}
    job = place.here.create(manifest)
    pods = place.wait_running(job)
    nodes = {pod["spec"]["nodeName"] for pod in pods if "-worker-" in pod["metadata"]["name"]}
    assert len(nodes) == 1
    assert all("schedulingGates" not in pod["spec"] for pod in pods)
    place.exit(pods)
    job.wait_end()


def test_a_replica_that_starts_again_stays_in_its_quota(place: Place) -> None:
    place.queue("restart")
    manifest = manifest_of("TFJob", "restart", "restart")
    manifest["spec"]["tfReplicaSpecs"]["Worker"]["restartPolicy"] = "ExitCode"
    job = place.here.create(manifest)
    place.wait_running(job)
    place.wait_workload(job, "PodsReady")
    other = place.create("TFJob", "restart-next", "restart")
    failed = job.pod("worker", 1)
    place.exit([failed], 137)

    def is_replaced(pods: list[Resource]) -> bool:
        new = [pod for pod in pods if pod["metadata"]["name"] == failed["metadata"]["name"]]
        return [pod["metadata"]["uid"] for pod in new] != [failed["metadata"]["uid"]] and bool(new)

    place.here.wait_pods(job.uid, is_replaced, "the worker starts again")
    pods = place.wait_running(job)
    assert all(pod["spec"]["nodeName"].startswith(place.namespace) for pod in pods), "without the flavor"
    assert pods_of(place.here, other) == []
    assert condition(place.workload(job), "Admitted")["status"] == "True"
    place.exit(pods)
    job.wait_end()
    place.wait_running(other)
    other.delete()


def test_a_user_suspends_and_resumes(place: Place) -> None:
    place.queue("suspend")
    one = place.create("DLJob", "suspend-one", "suspend")
    place.wait_running(one)
    one.patch({"spec": {"runPolicy": {"suspend": True}}})
    two = place.create("DLJob", "suspend-two", "suspend")
    pods = place.wait_running(two)
    assert all_terminate(pods_of(place.here, one))
    one.patch({"spec": {"runPolicy": {"suspend": False}}})
    one.wait(lambda status: says(status, "Waits in the queue suspend"), "it queues again")
    place.exit(pods)
    two.wait_end()
    place.wait_running(one)
    one.delete()
    place.wait_used("suspend", 0)


def test_another_size_queues_again(place: Place) -> None:
    place.queue("resize", cpu=4)
    job = place.create("PyTorchJob", "resize", "resize")
    place.wait_running(job)
    job.patch({"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 1}}}})
    place.wait_running(job, 2)
    place.wait_used("resize", 2)
    job.patch({"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 9}}}})
    job.wait(lambda status: says(status, "Waits in the queue resize: couldn't assign flavors"), "it says why")
    assert all_terminate(pods_of(place.here, job))
    place.wait_used("resize", 0)
    job.delete()
