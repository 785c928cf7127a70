"""Jobs whose replicas of one type have several templates: their pods, and what an edit replaces."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from support.builders import (
    JAX,
    MPI,
    MXNET,
    PADDLE,
    PYTORCH,
    TENSORFLOW,
    XGBOOST,
    Resource,
    environment_of,
    grouped,
    jaxjob,
    manifest_of,
    mpijob,
    mxjob,
    paddlejob,
    pytorchjob,
    tfjob,
    xgboostjob,
)
from support.fake_cluster import FakeCluster, is_quiet

GROUP = "dljob.operator/replica-group"
HASH = "dljob.operator/spec-hash"
ELASTIC = {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 9}}
LARGE, SMALL, OWN = ["worker-0", "worker-1"], ["worker-2", "worker-3", "worker-4"], ["worker-5"]


def torchjob(master: int = 1, **spec: Any) -> Resource:
    """Six workers: two of the group large, three of the group small, and one of none."""
    job = pytorchjob(master, 6, **spec)
    return grouped(job, "Worker", large=(2, {"image": "large:1"}), small=(3, {"image": "small:1"}))


def playing(job: Resource) -> FakeCluster:
    cluster = FakeCluster(job, PYTORCH)
    cluster.start()
    return cluster


def worker_of(spec: Any) -> Any:
    return spec["pytorchReplicaSpecs"]["Worker"]


def image_of(entry: Any, image: str) -> None:
    entry["template"]["spec"]["containers"][0]["image"] = image


# --- the pods


def test_each_group_has_its_template_and_its_label() -> None:
    cluster = playing(torchjob())
    found = {
        name: (pod["spec"]["containers"][0]["image"], pod["metadata"]["labels"].get(GROUP))
        for name, pod in sorted(cluster.pods.items())
    }
    assert found == {
        "example-job-master-0": ("train:1", None),
        "example-job-worker-0": ("large:1", "large"),
        "example-job-worker-1": ("large:1", "large"),
        "example-job-worker-2": ("small:1", "small"),
        "example-job-worker-3": ("small:1", "small"),
        "example-job-worker-4": ("small:1", "small"),
        "example-job-worker-5": ("train:1", None),
    }
    assert cluster.status["state"] == "Running"


def test_one_rank_space() -> None:
    pods = playing(torchjob()).pods
    environments = [environment_of(pod, "pytorch") for _, pod in sorted(pods.items())]
    assert [(one["RANK"], one["WORLD_SIZE"]) for one in environments] == [(str(rank), "7") for rank in range(7)]


@pytest.mark.parametrize(
    ("job", "framework", "type_"),
    [
        (pytorchjob(1, 3), PYTORCH, "Worker"),
        (jaxjob(3), JAX, "Worker"),
        (paddlejob(0, 3), PADDLE, "Worker"),
        (xgboostjob(1, 3), XGBOOST, "Worker"),
        (tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=3, ps=3), TENSORFLOW, "PS"),
        (mxjob("example-job").v1().servers(3).workers(3).resource(), MXNET, "Server"),
        (mpijob(3), MPI, "Worker"),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_only_the_template_depends_on_the_group(job: Resource, framework: Any, type_: str) -> None:
    """Names, addresses, ranks and environment are those of a job without groups."""
    plain = FakeCluster(copy.deepcopy(job), framework)
    made = FakeCluster(grouped(job, type_, a=(1, {"image": "a:1"}), b=(1, {"image": "b:1"})), framework)
    for cluster in (plain, made):
        cluster.settle()
    images = []
    for name, pod in sorted(made.pods.items()):
        other = plain.pods[name]
        for one in (pod, other):
            del one["metadata"]["annotations"][HASH]
        if pod["metadata"]["labels"].pop(GROUP, None):
            images.append(pod["spec"]["containers"][0].pop("image"))
            del other["spec"]["containers"][0]["image"]
        assert (pod["metadata"], pod["spec"]) == (other["metadata"], other["spec"])
    assert images == ["a:1", "b:1"]
    assert plain.services == made.services


def test_no_replica_has_a_copy_of_its_template() -> None:
    """Before its pod is made: the memory of a plan does not grow with the number of replicas."""
    resource = torchjob()
    entry = worker_of(resource["spec"])
    (group,) = (one for one in parse_job(resource, PYTORCH).groups if one.type == "Worker")
    assert all(group.template_of(index).template is entry["groups"][0]["template"] for index in (0, 1))
    assert group.template_of(5).template is entry["template"]


def test_a_pod_of_a_group_that_was_deleted_comes_back_in_it() -> None:
    cluster = playing(torchjob())
    cluster.user_deletes("example-job-worker-3")
    cluster.kubelet_deletes()
    cluster.settle()
    assert cluster.pod("worker", 3)["metadata"]["labels"][GROUP] == "small"


# --- edits


def grow(spec: Any) -> None:
    worker_of(spec)["replicas"] = 7


def shrink(spec: Any) -> None:
    worker_of(spec)["replicas"] = 5


def resize(*sizes: int) -> Callable[[Any], None]:
    def change(spec: Any) -> None:
        for group, size in zip(worker_of(spec)["groups"], sizes, strict=True):
            group["replicas"] = size

    return change


def add_group(spec: Any) -> None:
    groups = worker_of(spec)["groups"]
    groups.append({**copy.deepcopy(groups[0]), "name": "third", "replicas": 1})


ALL_WORKERS = [*LARGE, *SMALL, *OWN]


@pytest.mark.parametrize(
    ("change", "replaced"),
    [
        pytest.param(lambda spec: image_of(worker_of(spec)["groups"][0], "large:2"), LARGE, id="template of large"),
        pytest.param(lambda spec: image_of(worker_of(spec)["groups"][1], "small:2"), SMALL, id="template of small"),
        pytest.param(lambda spec: image_of(worker_of(spec), "train:2"), OWN, id="the entry's template"),
        pytest.param(lambda spec: worker_of(spec)["groups"][1].update(name="tiny"), SMALL, id="a name"),
        pytest.param(resize(3, 2), ["worker-2"], id="sizes: one replica moves"),
        pytest.param(resize(1, 3), ["worker-1", "worker-4"], id="sizes: the entry's template moves too"),
        pytest.param(resize(2, 4), OWN, id="sizes: none is left for the entry's template"),
        pytest.param(
            lambda spec: worker_of(spec)["groups"].reverse(), ["worker-0", "worker-1", "worker-3", "worker-4"]
        ),
        pytest.param(add_group, OWN, id="another group"),
        pytest.param(lambda spec: worker_of(spec).pop("groups"), [*LARGE, *SMALL], id="no groups"),
        pytest.param(grow, ["master-0", *ALL_WORKERS], id="another number"),
    ],
)
def test_what_an_edit_replaces(change: Callable[[Any], object], replaced: list[str]) -> None:
    """The pods whose template changes; a new number of workers all, since each knows it from its environment."""
    cluster = playing(torchjob())
    before = {name: pod["metadata"]["uid"] for name, pod in cluster.pods.items()}
    cluster.edit(change)
    cluster.settle()
    after = {name: pod["metadata"]["uid"] for name, pod in cluster.pods.items()}
    assert sorted(name.removeprefix("example-job-") for name in before if before[name] != after[name]) == replaced


@pytest.mark.parametrize(("change", "left"), [(grow, [*ALL_WORKERS, "worker-6"]), (shrink, [*LARGE, *SMALL])])
def test_another_number_of_elastic_workers_replaces_none(change: Callable[[Any], None], left: list[str]) -> None:
    cluster = playing(torchjob(0, **ELASTIC))
    before = {name: pod["metadata"]["uid"] for name, pod in cluster.pods.items()}
    cluster.edit(change)
    cluster.settle()
    assert cluster.replicas() == left
    assert all(pod["metadata"]["uid"] == before.get(name, pod["metadata"]["uid"]) for name, pod in cluster.pods.items())
    if "worker-6" in left:
        added = cluster.pod("worker", 6)
        assert added["spec"]["containers"][0]["image"] == "train:1"
        assert GROUP not in added["metadata"]["labels"]


def test_another_number_of_resizable_workers_replaces_none() -> None:
    cluster = FakeCluster(grouped(mpijob(3), "Worker", large=(2, {"image": "large:1"})), MPI)
    cluster.start()
    before = {name: pod["metadata"]["uid"] for name, pod in cluster.pods.items()}
    cluster.edit(lambda spec: spec["mpiReplicaSpecs"]["Worker"].update(replicas=4))
    cluster.settle()
    assert cluster.replicas() == ["launcher-0", "worker-0", "worker-1", "worker-2", "worker-3"]
    assert before.items() <= {name: pod["metadata"]["uid"] for name, pod in cluster.pods.items()}.items()


@pytest.mark.parametrize("elastic", [{}, ELASTIC], ids=["fixed", "elastic"])
def test_fewer_replicas_than_the_groups_have(elastic: dict[str, Any]) -> None:
    """The schema refuses it. Where another schema does not, the pods go on until the spec is valid again."""
    cluster = playing(torchjob(0, **elastic))
    before = sorted(cluster.pods)
    cluster.edit(lambda spec: worker_of(spec).update(replicas=4))
    cluster.settle()
    assert sorted(cluster.pods) == before
    assert "groups have 5 replicas" in cluster.status["reason"]
    cluster.edit(lambda spec: worker_of(spec).update(replicas=6))
    cluster.settle()
    assert sorted(cluster.pods) == before
    assert cluster.outcome == ("Running", "Running")


def test_a_completed_replica_that_gets_another_template_runs_again() -> None:
    cluster = playing(torchjob())
    cluster.exit("worker", 2, 0)
    cluster.settle()
    assert cluster.status["completed"] == {"worker": "2"}
    cluster.edit(resize(3, 2))
    cluster.settle()
    moved = cluster.pod("worker", 2)
    assert (moved["metadata"]["labels"][GROUP], moved["status"]["phase"]) == ("large", "Pending")
    assert "completed" not in cluster.status


def test_a_new_number_of_elastic_workers_forgets_no_retry() -> None:
    job = torchjob(0, **ELASTIC)
    worker_of(job["spec"])["restartPolicy"] = "ExitCode"
    cluster = playing(job)
    cluster.exit("worker", 1, 130)
    cluster.settle()
    cluster.edit(grow)
    cluster.settle()
    assert cluster.status["retries"] == {"worker-1": 1}


def test_all_restart_together() -> None:
    """With restartScope Job each pod gets the template of its group again, and no other attempt begins by that."""
    job = torchjob(runPolicy={"restartScope": "Job"})
    for entry in job["spec"]["pytorchReplicaSpecs"].values():
        entry["restartPolicy"] = "OnFailure"
    cluster = playing(job)
    cluster.exit("worker", 4, 1)
    cluster.settle()
    cluster.advance(60)
    cluster.settle()
    cluster.run_all()
    cluster.settle()
    assert (cluster.status["attempt"], cluster.status["state"]) == (1, "Running")
    labels = [cluster.pod("worker", index)["metadata"]["labels"].get(GROUP) for index in range(6)]
    assert labels == ["large", "large", "small", "small", "small", None]


def test_a_rule_restarts_the_job() -> None:
    rule = {"action": "RestartJob", "onExitCodes": {"containerName": "gpu", "operator": "In", "values": [3]}}
    job = pytorchjob(1, 3, runPolicy={"podFailurePolicy": {"rules": [rule]}})
    grouped(job, "Worker", large=(2, {}))
    # a container that only the group has
    template = worker_of(job["spec"])["groups"][0]["template"]
    template["spec"]["containers"].append({"name": "gpu", "image": "gpu:1"})
    cluster = playing(job)
    failed = {"name": "gpu", "restartCount": 0, "state": {"terminated": {"exitCode": 3, "reason": "Error"}}}
    cluster.pod("worker", 1)["status"]["containerStatuses"].append(failed)
    cluster.exit("worker", 1, 1)
    cluster.pod("worker", 1)["status"]["containerStatuses"].append(failed)
    cluster.settle()
    cluster.advance(60)
    cluster.settle()
    assert cluster.status["attempt"] == 1
    assert cluster.replicas() == ["master-0", "worker-0", "worker-1", "worker-2"]
    hashes = {name: pod["metadata"]["annotations"][HASH] for name, pod in cluster.pods.items()}
    assert all(value.endswith("-1") for value in hashes.values())
    assert hashes["example-job-worker-0"] == hashes["example-job-worker-1"] != hashes["example-job-worker-2"]


# --- templates that no replica has


def completed_without_pod(scope: str, unused: Callable[[Any], object]) -> FakeCluster:
    """A job whose worker 2 has completed and lost its pod, after an edit of a template that no replica has."""
    job = grouped(pytorchjob(1, 3, runPolicy={"restartScope": scope}), "Worker", all=(3, {}), none=(0, {}))
    for entry in job["spec"]["pytorchReplicaSpecs"].values():
        entry["restartPolicy"] = "OnFailure"
    cluster = playing(job)
    cluster.exit("worker", 2, 0)
    cluster.settle()
    del cluster.pods["example-job-worker-2"]
    cluster.settle()
    assert cluster.status["completed"] == {"worker": "2"}
    cluster.edit(lambda spec: unused(worker_of(spec)))
    cluster.settle()
    return cluster


@pytest.mark.parametrize("scope", ["Job", "Replica"])
@pytest.mark.parametrize(
    "unused",
    [
        pytest.param(lambda entry: image_of(entry, "another:1"), id="the type's own"),
        pytest.param(lambda entry: image_of(entry["groups"][1], "another:1"), id="an empty group's"),
        pytest.param(lambda entry: entry["groups"].pop(), id="an empty group"),
    ],
)
def test_an_edit_of_a_template_that_no_replica_has_changes_nothing(scope: str, unused: Callable[[Any], object]) -> None:
    cluster = completed_without_pod(scope, unused)
    assert cluster.replicas() == ["master-0", "worker-0", "worker-1"]
    assert cluster.status["completed"] == {"worker": "2"}
    assert "attempt" not in cluster.status


def test_an_edit_restarts_no_job_for_a_completed_replica() -> None:
    """Of a type without replicas here. The completed replica had no pod, the phase was still Running: a lost pod?"""
    job = tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=2, ps=0)
    job["spec"]["runPolicy"] = {"restartScope": "Job"}
    for entry in job["spec"]["tfReplicaSpecs"].values():
        entry["restartPolicy"] = "OnFailure"
    cluster = FakeCluster(job, TENSORFLOW)
    cluster.start()
    cluster.exit("worker", 1, 0)
    cluster.settle()
    del cluster.pods["example-job-worker-1"]
    cluster.edit(lambda spec: image_of(spec["tfReplicaSpecs"]["PS"], "another:1"))
    cluster.settle()
    assert "attempt" not in cluster.status
    assert cluster.replicas() == ["chief-0", "worker-0", "worker-1"], "which runs again, as after every edit"


@pytest.mark.parametrize("edit", [lambda entry: image_of(entry, "another:1"), lambda entry: entry.update(replicas=3)])
def test_the_own_template_of_elastic_workers_counts_before_one_has_it(edit: Callable[[Any], object]) -> None:
    """Else the first worker that scaling adds would be an edit, which forgets the retries."""
    cluster = playing(grouped(pytorchjob(0, 2, **ELASTIC), "Worker", all=(2, {})))
    before = cluster.status["specHash"]
    cluster.edit(lambda spec: worker_of(spec).update(replicas=3))
    cluster.settle()
    assert cluster.status["specHash"] == before


# --- the label


def test_a_template_cannot_put_its_pods_into_a_group() -> None:
    job = torchjob()
    for entry in (worker_of(job["spec"]), worker_of(job["spec"])["groups"][0]):
        entry["template"]["metadata"] = {"labels": {GROUP: "small", "mine": "x"}}
    cluster = playing(job)
    labels = [cluster.pod("worker", index)["metadata"]["labels"] for index in (0, 2, 5)]
    assert [(found.get(GROUP), found.get("mine")) for found in labels] == [("large", "x"), ("small", None), (None, "x")]


# --- messages


def test_a_failure_names_the_group() -> None:
    job = torchjob()
    worker_of(job["spec"])["restartPolicy"] = "Never"
    cluster = playing(job)
    cluster.exit("worker", 4, 1)
    cluster.settle()
    assert cluster.status["failure"]["pod"] == "example-job-worker-4"
    assert cluster.status["failure"]["message"] == (
        "container pytorch of pod example-job-worker-4 (group small) exited with 1 (Error)"
    )


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([], "pod example-job-worker-4 (group small) failed: Evicted"),
        (
            [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}}],
            "container pytorch of pod example-job-worker-4 (group small) exited with 3",
        ),
        (
            [{"action": "FailJob", "onPodConditions": [{"type": "Odd", "status": "True"}]}],
            "pod example-job-worker-4 (group small) has the condition Odd",
        ),
    ],
)
def test_other_failures_name_it_too(rules: list[Resource], message: str) -> None:
    job = torchjob(runPolicy={"podFailurePolicy": {"rules": rules}} if rules else {})
    worker_of(job["spec"])["restartPolicy"] = "Never"
    cluster = playing(job)
    if message.startswith("container"):
        cluster.exit("worker", 4, 3)
    else:
        status = cluster.pod("worker", 4)["status"]
        status.update(phase="Failed", reason="Evicted", containerStatuses=[])
        status["conditions"] = [{"type": "Odd", "status": "True"}]
    cluster.settle()
    assert cluster.status["failure"]["message"].startswith(message)


def test_a_pod_that_waits_is_named_with_its_group() -> None:
    cluster = FakeCluster(torchjob(runPolicy={"pendingTimeoutSeconds": 60}), PYTORCH)
    cluster.settle()
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node with a GPU"}
    cluster.pod("worker", 0)["status"]["conditions"] = [condition]
    cluster.settle()
    assert cluster.status["reason"] == "example-job-worker-0 (group large): Unschedulable: no node with a GPU"
    for _, pod in sorted(cluster.pods.items())[2:]:
        cluster.run_pod(pod)
    cluster.run("master", 0)
    cluster.advance(61)
    cluster.settle()
    assert cluster.status["failure"]["message"].startswith("pod example-job-worker-0 (group large) is pending")


# --- MPI: the first container of a template runs it, and the launcher's pod is that of a batch Job


def test_the_first_container_of_a_group() -> None:
    job = grouped(mpijob(2), "Worker", large=(1, {"name": "gpu"}))
    made = [manifest_of(parse_job(job, MPI), "Worker", index, framework=MPI) for index in (0, 1)]
    containers = [pod["spec"]["containers"] for pod in made]
    assert [[one["name"] for one in some] for some in containers] == [["gpu"], ["worker"]]
    assert all(some[0]["volumeMounts"] and some[0]["command"] for some in containers)


def test_a_group_of_the_launcher() -> None:
    cluster = FakeCluster(grouped(mpijob(1), "Launcher", big=(1, {"name": "main", "image": "big:1"})), MPI)
    cluster.start()
    assert is_quiet(cluster.step())
    template = cluster.others["Job"]["pi-launcher"]["spec"]["template"]
    assert template["metadata"]["labels"][GROUP] == "big"
    assert [one["image"] for one in template["spec"]["containers"]] == ["big:1"]
    assert cluster.status["state"] == "Running"
