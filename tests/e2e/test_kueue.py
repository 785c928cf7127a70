"""Jobs of every kind in queues of a real Kueue, by the Workloads that the operator creates, on simulated nodes.

The flavors, and nothing else, bring the pods to these nodes. `tests/unit/api/test_queueing.py` has the rarer cases.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from devtools.chaos.cli import kwok_program
from devtools.chaos.shapes import EXIT
from devtools.cluster.settings import settings_from
from devtools.demo.operator_process import OperatorProcess
from kubernetes import client
from support import builders
from support.kueue import QUEUE, Kueue, condition, installed
from support.live_jobs import Cluster, Job, Resource, until
from support.small_nodes import placed_on, small_nodes

pytestmark = [pytest.mark.serial, pytest.mark.full]

PRIORITY = "kueue.x-k8s.io/priority-class"
TOPOLOGY = "kueue.x-k8s.io/podset-required-topology"
PODS_READY_SECONDS = 20
DLJOB = {
    "apiVersion": "dljob.operator/v1",
    "kind": "DLJob",
    "spec": {
        "framework": "pytorch",
        "replicas": {
            type_: {"count": count, "template": {"spec": {"containers": [{"name": "pytorch"}]}}}
            for type_, count in (("Master", 1), ("Worker", 2))
        },
    },
}
JOBS: dict[str, Mapping[str, Any]] = {
    "DLJob": DLJOB,
    "MXJob": builders.mxjob().v1().workers(2).resource(),
    "MXJob-list": builders.mxjob().workers(2).resource(),
    "Caffe2Job": builders.caffe2job(3),
    "TFJob-v1alpha1": builders.tfjob(master=1, worker=2),
    "TFJob": builders.tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=2),
    "PyTorchJob": builders.pytorchjob(master=1, worker=2),
    "PyTorchJob-groups": builders.grouped(
        builders.pytorchjob(master=1, worker=2), "Worker", first=(1, {"env": [{"name": "GROUP", "value": "1"}]})
    ),
    "XGBoostJob": builders.xgboostjob(worker=2),
    "PaddleJob": builders.paddlejob(worker=3),
    "JAXJob": builders.jaxjob(worker=3),
    "MPIJob": builders.mpijob(),
}
"""Three pods each, of one CPU."""


class Place:
    """A namespace with nodes of four CPUs, an operator and Kueue."""

    def __init__(self, here: Cluster, kueue: Kueue) -> None:
        self.here, self.kueue, self.namespace = here, kueue, here.namespace

    def queue(self, name: str, cpu: int = 3, **spec: Any) -> None:
        """A queue whose flavor selects the nodes and tolerates their taint."""
        where = placed_on(self.namespace)
        topology = spec.pop("topologyName", None)
        more = {"topologyName": topology} if topology else {}
        self.kueue.flavor(name, nodeLabels=where["nodeSelector"], tolerations=where["tolerations"], **more)
        self.kueue.cluster_queue(name, {name: {"cpu": str(cpu)}}, **spec)
        self.kueue.local_queue(self.namespace, name, name)

    def create(self, kind: str, name: str, queue: str, **labels: str) -> Job:
        manifest = copy.deepcopy(dict(JOBS[kind]))
        manifest["metadata"] = {"name": name, "labels": {QUEUE: queue, **labels}}
        for template in _templates(manifest["spec"]):
            _simulate(template)
        return self.here.create(manifest)

    def exit(self, pods: list[Resource], code: int = 0) -> None:
        for pod in pods:
            name = pod["metadata"]["name"]
            change = {"metadata": {"annotations": {EXIT: str(code)}}}
            self.here.core.patch_namespaced_pod(name, self.namespace, change)

    def wait_running(self, job: Job, count: int = 3) -> list[Resource]:
        """The pods of a job once as many run and no other one is there."""

        def all_run(pods: list[Resource]) -> bool:
            return len(pods) == count and all(pod["status"].get("phase") == "Running" for pod in pods)

        self.here.wait_pods(job.uid, all_run, f"{count} pods of {job.name} run")
        return pods_of(self.here, job)

    def wait_used(self, queue: str, cpu: int) -> None:
        until(lambda: self.kueue.usage(queue).get("cpu", "0") == str(cpu))

    def workload(self, job: Job) -> Resource:
        found: list[Resource] = []

        def exists() -> bool:
            one = self.kueue.workload_of(self.namespace, job.uid)
            found[:] = [one] if one else []
            return bool(found)

        until(exists)
        return found[0]

    def wait_workload(self, job: Job, type_: str, status: str = "True", reason: str = "") -> Resource:
        return self.kueue.wait_workload(self.namespace, self.workload(job)["metadata"]["name"], type_, status, reason)


def _templates(spec: Any) -> Iterator[dict[str, Any]]:
    """All pod templates below."""
    if isinstance(spec, list):
        for one in spec:
            yield from _templates(one)
    elif isinstance(spec, dict):
        if isinstance(spec.get("template"), dict):
            yield spec["template"]
        for one in spec.values():
            yield from _templates(one)


def _simulate(template: dict[str, Any]) -> None:
    template["spec"]["terminationGracePeriodSeconds"] = 1
    for container in template["spec"]["containers"]:
        container |= {"resources": {"requests": {"cpu": "1"}}, "image": "none"}


def pods_of(here: Cluster, job: Job) -> list[Resource]:
    return here.owned_pods(job.uid)


def says(status: Mapping[str, Any], text: str) -> bool:
    return text in str(status.get("reason"))


@pytest.fixture(scope="module")
def place(
    cluster: Path, crds: None, api: client.ApiClient, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("kueue")
    core: Any = client.CoreV1Api(api)
    name = f"test-{uuid.uuid4().hex[:10]}"
    waits = {
        "timeout": f"{PODS_READY_SECONDS}s",
        "blockAdmission": False,
        "requeuingStrategy": {"backoffBaseSeconds": 1, "backoffLimitCount": 1},
    }
    with ExitStack() as stack:
        core.create_namespace({"metadata": {"name": name}})
        stack.callback(core.delete_namespace, name)
        here = Cluster(cluster, name, own_operator=True)
        stack.enter_context(small_nodes(here.core, kwok_program(settings_from()), cluster, name, folder))
        kueue = stack.enter_context(installed(settings_from(), cluster, [name], folder, waitForPodsReady=waits))
        arguments = ["--namespace", name, "--kueue", "workloads"]
        operator = stack.enter_context(OperatorProcess(cluster, folder / "operator.log", arguments))
        operator.wait_ready()
        yield Place(here, kueue)


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
    assert pods_of(place.here, low) == [], "its quota was given away while its pods were there"
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
    assert pods_of(place.here, job) == []
    assert status["phase"] == "Suspended"
    place.wait_used("nowhere", 0)
    job.delete()


@pytest.mark.parametrize("kind", ["MXJob", "PyTorchJob"])
def test_a_topology_keeps_the_workers_together(place: Place, kind: str) -> None:
    name = f"topology-{kind.lower()}"
    place.kueue.topology(name, "kubernetes.io/hostname")
    place.queue(name, topologyName=name)
    manifest = copy.deepcopy(dict(JOBS[kind]))
    manifest["metadata"] = {"name": name, "labels": {QUEUE: name}}
    for template in _templates(manifest["spec"]):
        _simulate(template)
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
    manifest = copy.deepcopy(dict(JOBS["TFJob"]))
    manifest["metadata"] = {"name": "restart", "labels": {QUEUE: "restart"}}
    for template in _templates(manifest["spec"]):
        _simulate(template)
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
    assert pods_of(place.here, one) == []
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
    assert pods_of(place.here, job) == []
    place.wait_used("resize", 0)
    job.delete()
