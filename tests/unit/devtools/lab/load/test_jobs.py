"""The small jobs are valid in their schemas' eyes, and the kinds are those of crds/."""

from __future__ import annotations

import pytest
from devtools.definitions import CRDS
from devtools.lab.load.jobs import SHAPES, small_job
from devtools.lab.load.kinds import JobKind, read_kinds, stored

KINDS = read_kinds()


def test_every_served_version_has_a_small_job() -> None:
    assert {(kind.api_version, kind.kind) for kind in KINDS} == set(SHAPES)


def test_each_object_is_in_one_stored_version() -> None:
    found = stored(KINDS)
    assert len({(kind.group, kind.kind) for kind in found}) == len(found) == len(list(CRDS.glob("*.yaml")))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.title)
def test_a_small_job_has_the_pods_of_its_shape(kind: JobKind) -> None:
    shape = SHAPES[kind.api_version, kind.kind]
    spec = small_job(kind.api_version, kind.kind, "x")["spec"]
    replicas = spec[shape.field] if shape.field else spec
    listed = replicas if isinstance(replicas, list) else list(replicas.values())
    entries = [replicas] if shape.single else listed
    assert sum(entry[shape.count_field] for entry in entries) == shape.pods <= 3
    assert shape.field == "" or shape.field in kind.schema["properties"]["spec"]["properties"]
    names = {c["name"] for entry in entries for c in entry["template"]["spec"]["containers"]}
    assert names == {shape.container}


def test_templates_are_separate_objects() -> None:
    replicas = small_job("kubeflow.org/v1", "MXJob", "x")["spec"]["mxReplicaSpecs"]
    assert replicas["Worker"]["template"] is not replicas["Server"]["template"]


def test_a_run_policy_has_no_place_in_a_list() -> None:
    assert isinstance(small_job("mpba.fbk.eu/v1", "MXJob", "x", run_policy={"suspend": True})["spec"], list)
    assert small_job("kubeflow.org/v1", "TFJob", "x", run_policy={"suspend": True})["spec"]["runPolicy"] == {
        "suspend": True
    }
