"""The table of kinds, generated from the roles, and what users may call them."""

from __future__ import annotations

from typing import Any

import pytest
from dljob import kinds
from support.kinds import DECLARED


def test_the_table_has_every_kind_of_every_role() -> None:
    declared = {(kind["group"], kind["kind"]) for role in DECLARED.values() for kind in role["kinds"]}
    assert {(kind.group, kind.kind) for kind in kinds.ALL} == declared | {("dljob.operator", "DLJob")}


@pytest.mark.parametrize(
    ("text", "resources"),
    [
        ("tfj", ["tfjobs.kubeflow.org"]),
        ("PyTorchJob", ["pytorchjobs.kubeflow.org"]),
        ("mxjobs", ["mxjobs.fioravanzo.org", "mxjobs.kubeflow.org", "mxjobs.mpba.fbk.eu"]),
        ("mxjobs.mpba.fbk.eu", ["mxjobs.mpba.fbk.eu"]),
        ("mpijobs.v2beta1.kubeflow.org", ["mpijobs.kubeflow.org"]),
        ("dljobs.dljob.operator", ["dljobs.dljob.operator"]),
    ],
)
def test_a_name_finds_its_kinds(text: str, resources: list[str]) -> None:
    assert [kind.resource for kind in kinds.named(text)] == resources


@pytest.mark.parametrize("text", ["pods", "", "tfjobs.example.com", "mpijobs.v9.kubeflow.org"])
def test_an_unknown_name_is_an_error_that_lists_the_known_ones(text: str) -> None:
    with pytest.raises(kinds.UnknownKind, match="pytorchjobs"):
        kinds.named(text)


def test_a_job_of_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(kinds.UnknownKind, match="batch/v1 Job is no kind"):
        kinds.kind_of({"apiVersion": "batch/v1", "kind": "Job"})


LAUNCHER: dict[str, Any] = {"mpiReplicaSpecs": {}}


@pytest.mark.parametrize(
    ("job", "batch_jobs"),
    [
        ({"apiVersion": "kubeflow.org/v1", "spec": LAUNCHER}, ()),
        ({"apiVersion": "kubeflow.org/v2beta1", "spec": LAUNCHER}, ("Launcher",)),
        # read in the stored version, created in the other
        (
            {"apiVersion": "kubeflow.org/v1", "spec": LAUNCHER, "status": {"apiVersion": "kubeflow.org/v2beta1"}},
            ("Launcher",),
        ),
        (
            {
                "apiVersion": "kubeflow.org/v1",
                "spec": LAUNCHER,
                "metadata": {
                    "managedFields": [
                        {"apiVersion": "kubeflow.org/v1", "subresource": "status"},
                        {"apiVersion": "kubeflow.org/v2beta1"},
                    ]
                },
            },
            ("Launcher",),
        ),
    ],
)
def test_the_version_of_the_creation_decides_the_flavor_of_an_mpijob(
    job: dict[str, Any], batch_jobs: tuple[str, ...]
) -> None:
    (kind,) = kinds.named("mpijobs")
    assert kind.flavor(job).batch_jobs == batch_jobs
