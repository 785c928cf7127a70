"""Jobs in a queue of Kueue whose Workloads the operator creates: whole reconciles against an API server in memory."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api import paths
from ansible_collections.dljob.operator.plugins.module_utils.api.cluster_info import OperatorSettings
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome, reconcile
from ansible_collections.dljob.operator.plugins.module_utils.shared import cache_snapshot
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import OWNED_KINDS
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from support import kinds
from support.builders import (
    CAFFE2,
    MPI,
    MXNET,
    NOW,
    PYTORCH,
    TENSORFLOW,
    Resource,
    caffe2job,
    grouped,
    mpijob,
    mxjob,
    pytorchjob,
    tfjob,
)
from support.fake_api_server import FakeApiServer, FakeRestClient
from support.fake_kueue import FakeKueue

QUEUE = "kueue.x-k8s.io/queue-name"
GPU = {"nodeLabels": {"pool": "gpu"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]}


class Lab:
    """One job with the label of a queue, the operator and Kueue."""

    def __init__(self, job: Resource, framework: Framework = PYTORCH, **labels: str) -> None:
        self.now = NOW
        self.server = FakeApiServer(lambda: self.now)
        self.kueue = FakeKueue(self.server)
        made = copy.deepcopy(job)
        made["metadata"].setdefault("namespace", "default")
        made["metadata"].setdefault("labels", {}).update({QUEUE: "team-a", **labels})
        made["metadata"].setdefault("generation", 1)
        self.framework = framework
        self.path = paths.object_path(made)
        self.key = ("default", paths.plural(made["kind"])), made["metadata"]["name"]
        self.server.add(self.key[0], made)
        self.kueue.add_flavor("gpu", **GPU)

    @property
    def job(self) -> Any:
        return self.server.objects[self.key[0]][self.key[1]]

    @property
    def status(self) -> Any:
        return self.job.get("status") or {}

    @property
    def pods(self) -> dict[str, Resource]:
        return self.server.objects.get(("default", "pods"), {})

    def reconcile(self, *, kueue: bool = True, watched: bool = False) -> Outcome:
        client = FakeRestClient(self.server)
        plurals = {kind: OWNED_KINDS[kind].plural for kind in ("Pod", "Service", "ConfigMap", "Workload")}
        owned: cache_snapshot.Owned = {
            kind: list(self.server.objects.get(("default", plural), {}).values()) for kind, plural in plurals.items()
        }
        reader = Reader(client, {self.job["metadata"]["uid"]: owned} if watched else None)
        context = Context(client, reader, OperatorSettings(kueue=kueue), clock=lambda: self.now)
        return reconcile(context, self.job, self.framework)

    def settle(self, **options: bool) -> None:
        """Reconcile until nothing changes; terminating pods go."""
        for _ in range(15):
            before = len(self.server.watch_events)
            outcome = self.reconcile(**options)
            assert outcome.ok, outcome.message
            for name, pod in list(self.pods.items()):
                if pod["metadata"].get("deletionTimestamp"):
                    del self.pods[name]
            if len(self.server.watch_events) == before:
                return
        raise AssertionError("it does not settle")

    def settle_fails(self) -> None:
        """Two tries: the second writes the status."""
        for _ in range(2):
            assert not self.reconcile().ok

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def set_pods(self, phase: str, state: Resource, only: str = "") -> None:
        for name, pod in self.pods.items():
            if only in name:
                container = pod["spec"]["containers"][0]["name"]
                one = {"name": container, "state": state, "restartCount": 0, "ready": phase == "Running"}
                pod["status"] = {
                    "phase": phase,
                    "containerStatuses": [one],
                    "conditions": [{"type": "Ready", "status": "True" if phase == "Running" else "False"}],
                }

    def run(self) -> None:
        self.set_pods("Running", {"running": {"startedAt": "2026-01-01T00:00:00Z"}})
        self.settle()

    def end(self, code: int = 0, only: str = "") -> None:
        ended = {"exitCode": code, "finishedAt": "2026-01-01T00:01:00Z", "reason": "Error" if code else "Completed"}
        self.set_pods("Failed" if code else "Succeeded", {"terminated": ended}, only)

    def edit(self, change: Callable[[Any], object]) -> None:
        changed = copy.deepcopy(self.job)
        change(changed["spec"])
        self.server.request("PUT", self.path, changed)


def start(lab: Lab, flavor: str = "gpu") -> None:
    lab.settle()
    lab.kueue.admit(flavor)
    lab.settle()
    lab.run()


JOBS: dict[str, tuple[Resource, Framework, dict[str, int]]] = {
    "MXJob": (mxjob().v1().workers(2).resource(), MXNET, {"scheduler": 1, "worker": 2}),
    "MXJob, list layout": (mxjob().workers(2).resource(), MXNET, {"scheduler": 1, "worker": 2}),
    "TfJob": (tfjob(master=1, worker=2), TENSORFLOW, {"master": 1, "worker": 2}),
    "TFJob": (tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, ps=1), TENSORFLOW, {"chief": 1, "ps": 1}),
    "Caffe2Job": (caffe2job(2), CAFFE2, {"worker": 2}),
    **{
        kind: (job, framework, {type_.name.lower(): type_.maximum or 2 for type_ in framework.replica_types})
        for kind, (framework, job) in kinds.plain_jobs().items()
    },
    "MPIJob": (mpijob(), MPI, {"launcher": 1, "worker": 2}),
    "groups": (
        grouped(pytorchjob(master=1, worker=3), "Worker", big=(2, {"nodeSelector": {"size": "big"}})),
        PYTORCH,
        {"master": 1, "worker-big": 2, "worker": 1},
    ),
}
every_job = pytest.mark.parametrize("name", JOBS)


def lab_of(name: str) -> Lab:
    job, framework, _ = JOBS[name]
    return Lab(job, framework)


@every_job
def test_it_waits_for_its_quota_and_asks_for_all_of_its_pods(name: str) -> None:
    lab = lab_of(name)
    lab.settle()
    assert not lab.pods
    assert lab.kueue.workload
    asked = {one["name"]: one["count"] for one in lab.kueue.workload["spec"]["podSets"]}
    assert asked == JOBS[name][2]
    assert lab.kueue.workload["spec"]["queueName"] == "team-a"
    assert lab.kueue.workload["metadata"]["ownerReferences"][0]["uid"] == lab.job["metadata"]["uid"]
    assert (lab.status["phase"], lab.status["reason"]) == ("Suspended", "Waits in the queue team-a")


@every_job
def test_it_runs_where_it_is_admitted(name: str) -> None:
    lab = lab_of(name)
    lab.settle()
    lab.kueue.admit("gpu")
    lab.settle()
    made = [*lab.pods.values()]
    made += [one["spec"]["template"] for one in lab.server.objects.get(("default", "jobs"), {}).values()]
    assert len(made) == sum(JOBS[name][2].values())
    for pod in made:
        assert pod["spec"]["nodeSelector"]["pool"] == "gpu"
        assert GPU["tolerations"][0] in pod["spec"]["tolerations"]
        assert pod["metadata"]["labels"]["kueue.x-k8s.io/podset"] in JOBS[name][2]
        assert pod["metadata"]["annotations"]["kueue.x-k8s.io/workload"] == lab.kueue.workload["metadata"]["name"]


@every_job
def test_evicted_it_gives_the_quota_back_without_its_pods_and_begins_anew(name: str) -> None:
    lab = lab_of(name)
    lab.settle()
    lab.kueue.admit("gpu")
    lab.settle()
    before = set(lab.pods)
    lab.kueue.evict()
    lab.settle()
    assert not lab.pods
    assert not lab.kueue.workload["status"].get("admission")
    got = [lab.kueue.status_of(one) for one in ("QuotaReserved", "Admitted", "Requeued")]
    assert got == ["False", "False", "True"]
    assert lab.status["reason"] == "Waits in the queue team-a again: by a higher priority"
    lab.wait(5)
    lab.kueue.admit()
    lab.settle()
    assert set(lab.pods) == before
    assert not any("pool" in pod["spec"].get("nodeSelector", {}) for pod in lab.pods.values()), "the old flavor"


def test_the_quota_is_kept_until_the_pods_are_deleted() -> None:
    lab = Lab(pytorchjob(master=1, worker=2))
    start(lab)
    lab.kueue.evict()
    lab.reconcile()
    assert lab.kueue.status_of("QuotaReserved") == "True", "given back with the deletions"
    lab.settle()
    assert lab.kueue.status_of("QuotaReserved") == "False"


def test_a_lost_status_write_gives_no_quota_back() -> None:
    """The status says Suspended, and the job has pods again: the write after its resumption was lost."""
    lab = Lab(pytorchjob(master=1, worker=2))
    lab.settle()
    old = copy.deepcopy(lab.status)
    lab.kueue.admit("gpu")
    lab.settle()
    lab.server.objects[lab.key[0]][lab.key[1]] = {**lab.job, "status": old}
    lab.kueue.evict()
    lab.reconcile()
    assert lab.kueue.status_of("QuotaReserved") == "True"


@pytest.mark.parametrize(
    ("reason", "requeued"),
    [("Preempted", "True"), ("NodeFailures", "True"), ("PodsReadyTimeout", "False"), ("ClusterQueueStopped", "False")],
)
def test_after_which_evictions_it_queues_again_at_once(reason: str, requeued: str) -> None:
    lab = Lab(pytorchjob(master=1))
    start(lab)
    lab.kueue.evict(reason)
    lab.settle()
    assert lab.kueue.status_of("Requeued") == requeued
    assert lab.kueue.condition("Requeued")["reason"] == reason


@pytest.mark.parametrize("code", [0, 1])
def test_its_end_gives_the_quota_back_once(code: int) -> None:
    lab = Lab(pytorchjob(master=1, runPolicy={"backoffLimit": 0}))
    start(lab)
    lab.end(code)
    lab.settle()
    outcome = "Failed" if code else "Succeeded"
    assert lab.status["state"] == outcome
    assert (lab.kueue.status_of("Finished"), lab.kueue.condition("Finished")["reason"]) == ("True", outcome)
    version = lab.kueue.workload["metadata"]["resourceVersion"]
    lab.settle()
    assert lab.kueue.workload["metadata"]["resourceVersion"] == version


def test_the_quota_is_kept_during_the_cleanup() -> None:
    lab = Lab(pytorchjob(master=1, worker=1, runPolicy={"cleanPodPolicy": "All"}))
    start(lab)
    lab.end(0, only="master")
    while lab.status.get("state") != "Succeeded":
        lab.reconcile()
        lab.wait(10)
    assert lab.status["phase"] == "CleanUp"
    assert lab.kueue.status_of("Finished") == ""
    lab.settle()
    assert lab.kueue.status_of("Finished") == "True"


def test_it_says_what_it_waits_for() -> None:
    lab = Lab(pytorchjob(master=1))
    lab.settle()
    lab.kueue.hold("insufficient unused quota for cpu in flavor gpu, 1 more needed")
    lab.settle()
    expected = "Waits in the queue team-a: insufficient unused quota for cpu in flavor gpu, 1 more needed"
    assert lab.status["reason"] == expected
    lab.kueue.reserve([{"name": "budget", "state": "Pending"}, {"name": "nodes", "state": "Ready"}])
    lab.settle()
    assert lab.status["reason"] == "Waits in the queue team-a for admission checks: budget is Pending"
    assert not lab.pods


def test_what_admission_checks_add_reaches_the_pods() -> None:
    lab = Lab(pytorchjob(master=1, worker=1))
    lab.settle()
    updates = [{"name": "worker", "labels": {"a": "b"}, "annotations": {"c": "d"}, "nodeSelector": {"e": "f"}}]
    lab.kueue.admit("gpu", checks=[{"name": "nodes", "state": "Ready", "podSetUpdates": updates}])
    lab.settle()
    worker = next(pod for name, pod in lab.pods.items() if "worker" in name)
    master = next(pod for name, pod in lab.pods.items() if "master" in name)
    assert worker["metadata"]["labels"]["a"] == "b"
    assert worker["metadata"]["annotations"]["c"] == "d"
    assert worker["spec"]["nodeSelector"] == {"pool": "gpu", "e": "f"}
    assert "a" not in master["metadata"]["labels"]


def test_a_topology_gates_the_pods() -> None:
    job = pytorchjob(worker=2)
    template = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
    template.setdefault("metadata", {})["annotations"] = {"kueue.x-k8s.io/podset-required-topology": "rack"}
    lab = Lab(job)
    lab.settle()
    assert lab.kueue.workload
    (asked,) = (one for one in lab.kueue.workload["spec"]["podSets"] if one["name"] == "worker")
    assert asked["topologyRequest"] == {"required": "rack", "podIndexLabel": "dljob.operator/replica-index"}
    lab.kueue.admit("gpu", topology={"levels": ["rack"]})
    lab.settle()
    assert {pod["metadata"]["labels"]["dljob.operator/replica-index"] for pod in lab.pods.values()} == {"0", "1"}
    for pod in lab.pods.values():
        assert pod["spec"]["schedulingGates"] == [{"name": "kueue.x-k8s.io/topology"}]


def test_a_topology_of_the_flavor_alone_is_unconstrained() -> None:
    lab = Lab(pytorchjob(master=1))
    lab.settle()
    lab.kueue.admit("gpu", topology={"levels": ["rack"]})
    lab.settle()
    (pod,) = lab.pods.values()
    assert pod["metadata"]["annotations"]["kueue.x-k8s.io/podset-unconstrained-topology"] == "true"


def test_a_flavor_that_changes_later_restarts_nothing() -> None:
    lab = Lab(pytorchjob(master=1, worker=1))
    start(lab)
    before = {name: pod["metadata"]["uid"] for name, pod in lab.pods.items()}
    lab.kueue.add_flavor("gpu", nodeLabels={"pool": "another"})
    lab.settle()
    assert {name: pod["metadata"]["uid"] for name, pod in lab.pods.items()} == before


def test_kueue_learns_when_the_pods_are_ready() -> None:
    lab = Lab(pytorchjob(master=1, worker=1))
    lab.settle()
    lab.kueue.admit("gpu")
    lab.settle()
    assert lab.kueue.status_of("PodsReady") == ""
    lab.run()
    assert (lab.kueue.status_of("PodsReady"), lab.kueue.condition("PodsReady")["reason"]) == ("True", "Started")


def test_a_replica_that_starts_again_stays_in_its_quota() -> None:
    job = pytorchjob(master=1, worker=1)
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["restartPolicy"] = "ExitCode"
    lab = Lab(job)
    start(lab)
    old = {name: pod["metadata"]["uid"] for name, pod in lab.pods.items()}
    lab.end(137, only="worker")
    lab.wait(60)
    for _ in range(4):
        lab.reconcile()
        for name, pod in list(lab.pods.items()):
            if pod["metadata"].get("deletionTimestamp"):
                del lab.pods[name]
        lab.wait(60)
    new = {name: pod["metadata"]["uid"] for name, pod in lab.pods.items()}
    assert [name for name in new if new[name] != old[name]] == [name for name in new if "worker" in name]
    assert lab.kueue.status_of("Admitted") == "True"
    assert lab.kueue.condition("PodsReady")["reason"] == "WaitForRecovery"
    lab.run()
    assert lab.kueue.condition("PodsReady")["reason"] == "Recovered"


def test_another_size_queues_again() -> None:
    lab = Lab(pytorchjob(master=1, worker=1))
    start(lab)
    lab.edit(lambda spec: spec["pytorchReplicaSpecs"]["Worker"].update(replicas=3))
    lab.settle()
    assert not lab.pods
    assert lab.kueue.workload
    assert [one["count"] for one in lab.kueue.workload["spec"]["podSets"]] == [1, 3]
    assert lab.kueue.status_of("QuotaReserved") == ""
    lab.kueue.admit("gpu")
    lab.settle()
    assert len(lab.pods) == 4


def test_another_size_before_the_admission_keeps_the_place() -> None:
    lab = Lab(pytorchjob(master=1, worker=1))
    lab.settle()
    assert lab.kueue.workload
    uid = lab.kueue.workload["metadata"]["uid"]
    lab.edit(lambda spec: spec["pytorchReplicaSpecs"]["Worker"].update(replicas=3))
    lab.settle()
    assert [one["count"] for one in lab.kueue.workload["spec"]["podSets"]] == [1, 3]
    assert lab.kueue.workload["metadata"]["uid"] == uid


def test_its_user_suspends_and_resumes_it() -> None:
    lab = Lab(pytorchjob(master=1, worker=1))
    start(lab)
    lab.edit(lambda spec: spec.setdefault("runPolicy", {}).update(suspend=True))
    lab.settle()
    assert not lab.pods
    assert lab.kueue.workload
    assert lab.kueue.workload["spec"]["active"] is False
    lab.kueue.evict("Deactivated", "The workload is deactivated")
    lab.settle()
    assert lab.kueue.status_of("QuotaReserved") == "False"
    lab.edit(lambda spec: spec["runPolicy"].update(suspend=False))
    lab.settle()
    assert lab.kueue.workload["spec"]["active"] is True
    assert not lab.pods
    lab.wait(5)
    lab.kueue.admit("gpu")
    lab.settle()
    assert len(lab.pods) == 2


def test_a_workload_that_kueue_deactivates_stays_so() -> None:
    lab = Lab(pytorchjob(master=1))
    start(lab)
    lab.server.request(
        "PUT",
        f"/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads/{lab.kueue.workload['metadata']['name']}",
        {**lab.kueue.workload, "spec": {**lab.kueue.workload["spec"], "active": False}},
    )
    lab.kueue.evict("Deactivated", "exceeded the requeue limit")
    lab.settle()
    assert not lab.pods
    assert lab.kueue.workload["spec"]["active"] is False
    assert lab.status["reason"].startswith("Kueue has deactivated its Workload pytorchjob-")


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ({"kueue.x-k8s.io/priority-class": "gold"}, ("kueue.x-k8s.io", "WorkloadPriorityClass", "gold", 7)),
        ({}, ("scheduling.k8s.io", "PriorityClass", "pods", 3)),
    ],
)
def test_the_priority_of_its_class(label: dict[str, str], expected: tuple[str, str, str, int]) -> None:
    job = pytorchjob(master=1)
    job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["priorityClassName"] = "pods"
    lab = Lab(job, **label)
    lab.server.add(("", "workloadpriorityclasses"), {"metadata": {"name": "gold"}, "value": 7})
    lab.server.add(("", "priorityclasses"), {"metadata": {"name": "pods"}, "value": 3})
    lab.settle()
    assert lab.kueue.workload
    spec = lab.kueue.workload["spec"]
    assert (*spec["priorityClassRef"].values(), spec["priority"]) == expected


def test_a_class_that_does_not_exist_is_reported() -> None:
    lab = Lab(pytorchjob(master=1), **{"kueue.x-k8s.io/priority-class": "gold"})
    outcome = lab.reconcile()
    problem = 'Workload: workloadpriorityclasses.kueue.x-k8s.io "gold" not found'
    assert (outcome.ok, outcome.message) == (False, problem)
    assert not lab.pods
    for _ in range(2):
        lab.reconcile()
        assert lab.status["reason"] == f"Waits in the queue team-a: {problem}"
    version = lab.job["metadata"]["resourceVersion"]
    lab.reconcile()
    assert lab.job["metadata"]["resourceVersion"] == version
    lab.server.add(("", "workloadpriorityclasses"), {"metadata": {"name": "gold"}, "value": 7})
    lab.settle()
    assert lab.kueue.workload


def test_another_priority_changes_the_workload_in_place() -> None:
    lab = Lab(pytorchjob(master=1))
    lab.server.add(("", "workloadpriorityclasses"), {"metadata": {"name": "gold"}, "value": 7})
    start(lab)
    changed = copy.deepcopy(lab.job)
    changed["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "gold"
    lab.server.request("PUT", lab.path, changed)
    lab.settle()
    assert lab.kueue.workload
    assert lab.kueue.workload["spec"]["priority"] == 7
    assert len(lab.pods) == 1


def test_variables_and_commands_stay_out_of_the_workload() -> None:
    job = pytorchjob(master=1)
    container = job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]
    container |= {"env": [{"name": "TOKEN", "value": "secret"}], "resources": {"limits": {"cpu": "1"}}}
    lab = Lab(job)
    lab.settle()
    assert lab.kueue.workload
    (pod_set,) = lab.kueue.workload["spec"]["podSets"]
    (kept,) = pod_set["template"]["spec"]["containers"]
    assert kept == {"name": "pytorch", "image": container["image"], "resources": {"limits": {"cpu": "1"}}}


def test_a_job_that_runs_already_runs_to_its_end() -> None:
    lab = Lab(pytorchjob(master=1))
    lab.settle(kueue=False)
    lab.run()
    lab.settle(kueue=True)
    assert len(lab.pods) == 1
    assert lab.kueue.workload is None


def test_a_workload_that_somebody_deletes_costs_the_job_its_pods() -> None:
    lab = Lab(pytorchjob(master=1))
    start(lab)
    lab.server.objects["default", "workloads"].clear()
    lab.settle()
    assert not lab.pods
    assert lab.kueue.workload


def test_a_job_that_loses_its_label_keeps_its_quota_until_it_ends() -> None:
    lab = Lab(pytorchjob(master=1))
    start(lab)
    changed = copy.deepcopy(lab.job)
    del changed["metadata"]["labels"][QUEUE]
    lab.server.request("PUT", lab.path, changed)
    lab.settle(watched=True)
    assert len(lab.pods) == 1
    assert lab.kueue.workload
    assert lab.kueue.workload["spec"]["queueName"] == "team-a"
    lab.end()
    lab.settle(watched=True)
    assert lab.kueue.status_of("Finished") == "True"


def test_without_a_watch_it_looks_again() -> None:
    lab = Lab(pytorchjob(master=1))
    lab.settle()
    assert lab.reconcile().requeue_after == 10
    assert lab.reconcile(watched=True).requeue_after is None


def test_without_the_label_there_is_no_workload() -> None:
    lab = Lab(pytorchjob(master=1), **{QUEUE: ""})
    lab.settle()
    assert lab.kueue.workload is None
    assert len(lab.pods) == 1


def test_without_the_option_the_operator_leaves_the_queue_to_kueue() -> None:
    lab = Lab(pytorchjob(master=1))
    lab.settle(kueue=False)
    assert lab.kueue.workload is None
    assert len(lab.pods) == 1


def test_beside_kueues_own_integration_it_makes_none() -> None:
    lab = Lab(pytorchjob(master=1))
    metadata = lab.job["metadata"]
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": metadata["name"], "uid": metadata["uid"]}
    labels = {"kueue.x-k8s.io/job-uid": metadata["uid"]}
    references = [{**owner, "controller": True}]
    theirs = {"name": "theirs", "namespace": "default", "labels": labels, "ownerReferences": references}
    lab.server.add(("default", "workloads"), {"metadata": theirs, "spec": {}})
    outcome = lab.reconcile()
    assert not outcome.ok
    assert "Kueue's own integration has the Workload theirs for this job" in outcome.message
    assert list(lab.server.objects["default", "workloads"]) == ["theirs"]


def test_a_cache_that_lacks_the_new_workload_is_no_problem() -> None:
    lab = Lab(pytorchjob(master=1))
    lab.settle()
    workloads = lab.server.objects["default", "workloads"]
    found = workloads.copy()
    workloads.clear()
    lab.server.admission.append(lambda call, server: workloads.update(found) if call.method == "POST" else None)
    outcome = lab.reconcile()
    assert (outcome.ok, outcome.requeue_after) == (True, 0.5)


def test_a_strangers_workload_of_that_name_is_reported() -> None:
    lab = Lab(pytorchjob(master=1))
    lab.settle()
    (stranger,) = lab.server.objects["default", "workloads"].values()
    name = stranger["metadata"]["name"]
    metadata = {key: value for key, value in stranger["metadata"].items() if key != "ownerReferences"}
    lab.server.objects["default", "workloads"][name] = {**stranger, "metadata": metadata}
    lab.settle_fails()
    assert (
        lab.status["reason"]
        == f"Waits in the queue team-a: Workload: {name} exists and is not this job's: delete or rename it"
    )
    assert not lab.pods


def test_a_flavor_that_does_not_exist_is_reported() -> None:
    lab = Lab(pytorchjob(master=1))
    lab.settle()
    lab.kueue.admit("gone")
    lab.settle_fails()
    assert (
        lab.status["reason"] == 'Waits in the queue team-a: Workload: resourceflavors.kueue.x-k8s.io "gone" not found'
    )
    assert not lab.pods


def test_a_cluster_without_kueue_is_reported() -> None:
    lab = Lab(pytorchjob(master=1))
    send = lab.server.send

    def without_kueue(method: str, path: str, *rest: Any) -> Any:
        return send(method, "/unknown" if "kueue.x-k8s.io" in path else path, *rest)

    lab.server.send = without_kueue  # type: ignore[method-assign]
    outcome = lab.reconcile()
    assert "the cluster has no workloads.kueue.x-k8s.io; install Kueue 0.16 or newer" in outcome.message
    assert not outcome.ok
    assert not lab.pods


def test_too_many_pod_sets_are_reported() -> None:
    groups = {f"g{n}": (1, {"nodeSelector": {"n": str(n)}}) for n in range(16)}
    job = tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, ps=1, worker=17, evaluator=1)
    lab = Lab(grouped(job, "Worker", **groups), TENSORFLOW)
    lab.settle()
    assert lab.status["reason"].startswith("Kueue queues jobs with at most 18 pod sets, and the job has 20")
    assert lab.kueue.workload is None
    assert not lab.pods


def test_a_failed_one_does_not_start_again_by_an_edit() -> None:
    lab = Lab(pytorchjob(master=1, runPolicy={"backoffLimit": 0}))
    start(lab)
    lab.end(1)
    lab.settle()
    lab.edit(lambda spec: spec["pytorchReplicaSpecs"]["Master"].update(restartPolicy="Never"))
    lab.settle()
    assert lab.status["state"] == "Failed"
    assert not any(pod["status"]["phase"] == "Pending" for pod in lab.pods.values())


def test_an_invalid_edit_keeps_the_pods_and_their_quota() -> None:
    lab = Lab(pytorchjob(master=1))
    start(lab)
    lab.edit(lambda spec: spec["pytorchReplicaSpecs"].update(Boss={"replicas": 1}))
    lab.settle()
    assert len(lab.pods) == 1
    assert lab.kueue.status_of("Admitted") == "True"


def test_an_invalid_job_asks_for_nothing() -> None:
    job = pytorchjob(master=1)
    job["spec"]["pytorchReplicaSpecs"]["Boss"] = {"replicas": 1}
    lab = Lab(job)
    lab.settle()
    assert lab.status["state"] == "Failed"
    assert lab.kueue.workload is None


def test_a_conflict_with_kueue_is_tried_again() -> None:
    lab = Lab(pytorchjob(master=1))
    start(lab)
    lab.kueue.evict()
    lab.reconcile()
    lab.pods.clear()
    request = lab.server.request

    def late(method: str, path: str, *rest: Any) -> Any:
        if method == "PATCH" and "/workloads/" in path:
            lab.server.request = request  # type: ignore[method-assign]
            lab.kueue.hold("changed meanwhile")
        return request(method, path, *rest)

    lab.server.request = late  # type: ignore[method-assign]
    outcome = lab.reconcile()
    assert (outcome.ok, outcome.requeue_after) == (True, 0.5)
    lab.settle()
    assert not (lab.kueue.workload or {})["status"].get("admission")
