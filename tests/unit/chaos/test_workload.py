"""The jobs of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from devtools.chaos import shapes, stages, workload
from devtools.chaos.shapes import SHAPES
from devtools.chaos.workload import RESOURCES, WATCHED, Job

CRDS = Path(__file__).resolve().parents[3] / "crds"
ALL = workload.jobs(1, 0, len(SHAPES))


def served() -> set[tuple[str, str, str]]:
    """(group, version, kind) of every version of every CRD."""
    found = set()
    for path in CRDS.glob("*.yaml"):
        spec = yaml.safe_load(path.read_text())["spec"]
        for version in spec["versions"]:
            found.add((spec["group"], version["name"], spec["names"]["kind"]))
    return found


def test_every_kind_and_version_of_the_operator_has_a_job() -> None:
    made = {(*job.manifest["apiVersion"].split("/"), job.manifest["kind"]) for job in ALL}
    assert made == {(*api_version.split("/"), kind) for api_version, kind in RESOURCES}
    # Kubernetes itself retries the launcher of an MPIJob, with delays that are longer than a round's time of settling
    assert served() - made <= {("kubeflow.org", "v1", "Caffe2Job"), ("kubeflow.org", "v2beta1", "MPIJob")}


def test_each_resource_is_watched_once() -> None:
    assert len(WATCHED) == len({(one.group, one.plural) for one in RESOURCES.values()})
    assert {one.version for one in WATCHED if one.plural == "tfjobs" and one.group == "kubeflow.org"} == {"v1"}


def test_a_seed_determines_the_jobs() -> None:
    assert workload.jobs(1, 2, 20) == workload.jobs(1, 2, 20)
    assert workload.jobs(1, 2, 20) != workload.jobs(2, 2, 20)


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
    text = yaml.safe_dump_all(stages.pod_stages())
    for name in (shapes.EXIT, shapes.FIRST_EXIT, shapes.SECONDS, shapes.TIME, stages.ATTEMPT):
        assert name in text
    assert not any(word in text for word in ("LAST_EXIT", '"ATTEMPT"', '"TIME"'))
