"""The jobs of a run."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
import yaml
from devtools.definitions import definitions
from devtools.lab.chaos import resources, shapes, workload
from devtools.lab.chaos.history import ATTEMPT, JOB_GROUPS
from devtools.lab.chaos.nodes import pod_stages
from devtools.lab.chaos.shapes import SHAPES
from devtools.lab.chaos.workload import Job

ALL = workload.jobs(1, 0, len(SHAPES))


def served() -> set[tuple[str, str, str]]:
    """(group, version, kind) of every version of every CRD."""
    found = set()
    for definition in definitions().values():
        spec = definition["spec"]
        for version in spec["versions"]:
            found.add((spec["group"], version["name"], spec["names"]["kind"]))
    return found


def test_every_kind_and_version_of_the_operator_has_a_job() -> None:
    made = {(*job.manifest["apiVersion"].split("/"), job.manifest["kind"]) for job in ALL}
    assert made == served()
    assert set(JOB_GROUPS) == {group for group, _, _ in made}


def test_each_kind_is_watched_once() -> None:
    watched = resources.watched()
    assert len(watched) == len({(group, kind) for group, _, kind in served()})
    assert {one.version for one in watched if one.plural == "tfjobs" and one.group == "kubeflow.org"} == {"v1"}


def test_the_collection_of_a_job_is_that_of_its_version() -> None:
    manifest = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob"}
    assert resources.collection_of(manifest, "n") == "/apis/kubeflow.org/v2beta1/namespaces/n/mpijobs"


def test_a_seed_determines_the_jobs() -> None:
    assert workload.jobs(1, 2, 20) == workload.jobs(1, 2, 20)
    assert workload.jobs(1, 2, 20) != workload.jobs(2, 2, 20)


def test_a_run_of_chosen_shapes_has_no_others() -> None:
    chosen = workload.titled("MPIJob", "DLJob of MPI")
    assert {shape.title for shape in chosen} == {shape.title for shape in SHAPES if "MPI" in shape.title}
    assert {job.manifest["kind"] for job in workload.jobs(1, 0, 16, chosen)} == {"MPIJob", "DLJob"}
    assert workload.titled() == SHAPES


def test_a_job_is_created_again_in_its_own_version() -> None:
    """A job of v2beta1, which is watched in v1, became one of v1 with fields of the other."""
    job = next(job for job in ALL if job.manifest["apiVersion"] == "kubeflow.org/v2beta1")
    noted = [
        {"apiVersion": "kubeflow.org/v1", "fieldsV1": {"f:spec": {}}},
        {"apiVersion": "kubeflow.org/v2beta1", "fieldsV1": {"f:metadata": {"f:labels": {}}}},
    ]
    watched = {**job.manifest, "apiVersion": "kubeflow.org/v1", "status": {"state": "Running"}}
    watched["metadata"] = {**job.manifest["metadata"], "uid": "x", "managedFields": noted}
    assert workload.anew(watched) == job.manifest


def test_a_launcher_never_ends_in_the_future() -> None:
    """Kubernetes would not retry it before that time has come."""
    made = [job.manifest["spec"] for seed in range(40) for job in workload.jobs(seed, 0, 8, workload.titled("MPI"))]
    replicas = [spec.get("mpiReplicaSpecs") or spec["replicas"] for spec in made]
    times = {
        type_: {one[type_]["template"]["metadata"]["annotations"].get(shapes.TIME) for one in replicas}
        for type_ in ("Launcher", "Worker")
    }
    assert times == {"Launcher": {None, shapes.SKEWED[0]}, "Worker": {None, *shapes.SKEWED}}


def test_a_worker_that_may_not_be_replaced_belongs_to_a_job_that_fails() -> None:
    for shape in workload.titled("MPI"):
        spec = shape.build(random.Random("a"), "j", {})["spec"]
        worker = (spec.get("mpiReplicaSpecs") or spec["replicas"])["Worker"]
        assert (worker["restartPolicy"] == "Never") == (shape.title == "MPIJob, failed worker"), shape.title


def test_the_paths_of_owned_objects() -> None:
    assert [one.collection("n") for one in resources.OWNED] == [
        "/api/v1/namespaces/n/pods",
        "/api/v1/namespaces/n/services",
        "/api/v1/namespaces/n/configmaps",
        "/api/v1/namespaces/n/secrets",
        "/api/v1/namespaces/n/serviceaccounts",
        "/apis/batch/v1/namespaces/n/jobs",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/n/roles",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/n/rolebindings",
    ]


def test_a_name_occurs_once_in_a_run() -> None:
    names = [job.name for round_ in range(5) for job in workload.jobs(1, round_, 20)]
    assert len(set(names)) == 100


@pytest.mark.parametrize("job", [job for job in ALL if workload.can_edit(job.manifest)], ids=lambda job: job.name)
def test_an_edit_changes_the_number_of_replicas(job: Job) -> None:
    (operation,) = workload.edit(job.manifest)
    there: Any = job.manifest
    for part in operation["path"].strip("/").split("/"):
        there = there[int(part)] if isinstance(there, list) else there[part]
    assert abs(operation["value"] - there) == 1
    assert operation["value"] >= 1


def test_a_list_cannot_be_suspended() -> None:
    by_flavor = {isinstance(job.manifest["spec"], list): job.manifest for job in ALL}
    assert workload.suspend(by_flavor[True], True) is None
    assert workload.suspend(by_flavor[False], True) == {"spec": {"runPolicy": {"suspend": True}}}


def test_the_stages_read_the_annotations_of_the_jobs() -> None:
    text = yaml.safe_dump_all(pod_stages())
    for name in (shapes.EXIT, shapes.FIRST_EXIT, shapes.SECONDS, shapes.TIME, shapes.UNLUCKY_EXIT, ATTEMPT):
        assert name in text
    templates = [stage["spec"]["next"].get("statusTemplate", "") for stage in pod_stages()]
    assert sum(f'regexMatch "{shapes.UNLUCKY}"' in one for one in templates) == 3
    killed = [one for one in templates if '{{ if .metadata.deletionTimestamp }}{{ $exit = "137" }}' in one]
    assert killed == [one for one in templates if "exitCode" in one]


def matching(pod: Any) -> list[str]:
    """The stages that are for ``pod``, by the selectors that kwok evaluates."""
    found = []
    for stage in pod_stages():
        terms = stage["spec"]["selector"]["matchExpressions"]
        if all(holds(term, value_at(pod, term["key"])) for term in terms):
            found.append(stage["metadata"]["name"].removeprefix("chaos-pod-"))
    return found


def value_at(pod: Any, key: str) -> Any:
    for part in re.findall(r'\["([^"]+)"\]|\.(\w+)', key):
        pod = (pod or {}).get("".join(part))
    return pod


def holds(term: Any, value: Any) -> bool:
    return {
        "Exists": value is not None,
        "DoesNotExist": value is None,
        "In": value in term.get("values", ()),
    }[term["operator"]]


def simulated(phase: str = "", *, deleted: bool = False, attempt: int = 0, **annotations: str) -> Any:
    names = {"exit": shapes.EXIT, "first_exit": shapes.FIRST_EXIT}
    metadata: dict[str, Any] = {
        "labels": {ATTEMPT: str(attempt)},
        "annotations": {names[name]: text for name, text in annotations.items()},
    }
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status = {"phase": phase, "podIP": "10.0.0.1"} if phase else {"phase": "Pending"}
    return {"metadata": metadata, "status": status}


@pytest.mark.parametrize(
    ("pod", "stages_of_it"),
    [
        (simulated(), ["ready"]),
        (simulated("Running"), []),
        (simulated("Running", exit="0"), ["ended"]),
        (simulated("Running", exit="0", first_exit="137"), ["ended"]),
        (simulated("Running", first_exit="137"), ["ended-once"]),
        (simulated("Running", first_exit="137", attempt=1), []),
        (simulated("Failed", exit="1"), []),
        (simulated(deleted=True), ["killed"]),
        (simulated("Running", deleted=True, exit="0"), ["killed"]),
        (simulated("Failed", deleted=True), ["deleted"]),
        (simulated("Succeeded", deleted=True), ["deleted"]),
    ],
)
def test_a_pod_is_in_one_stage_at_most(pod: Any, stages_of_it: list[str]) -> None:
    assert matching(pod) == stages_of_it


def test_finalizers_are_left_to_their_owner() -> None:
    """The controller of batch Jobs would not count a pod that has lost its finalizer."""
    assert not any("finalizers" in stage["spec"]["next"] for stage in pod_stages())
