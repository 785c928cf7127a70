"""Validation of ``groups``, replicas of one type with a pod template of their own, in every kind with a map of types."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from kubernetes import client
from support.builders import (
    Resource,
    grouped,
    jaxjob,
    mpijob,
    mxjob,
    paddlejob,
    pytorchjob,
    tfjob,
    xgboostjob,
)

DLJOB = {
    "apiVersion": "dljob.operator/v1",
    "kind": "DLJob",
    "metadata": {"name": "digits"},
    "spec": {"framework": "pytorch", "replicas": {"Worker": {"count": 4, "image": "train:1"}}},
}


def written(job: Resource) -> Resource:
    """A job as a user writes it."""
    return {**job, "metadata": {"name": job["metadata"]["name"]}}


def sized(*sizes: int, workers: int = 4) -> Resource:
    groups = {f"g{number}": (size, {"image": f"g{number}:1"}) for number, size in enumerate(sizes)}
    return grouped(written(pytorchjob(1, workers)), "Worker", **groups)


def changed(change: Callable[[Any], object]) -> Resource:
    """Four workers, of which two are in a group; ``change`` is made to that."""
    job = sized(2)
    change(job["spec"]["pytorchReplicaSpecs"]["Worker"]["groups"][0])
    return job


def short(**group: Any) -> Resource:
    """A DLJob of four workers, with a group of these fields."""
    job: Any = copy.deepcopy(DLJOB)
    job["spec"]["replicas"]["Worker"]["groups"] = [{"name": "large", **group}]
    return dict(job)


TWO = {"large": (1, {"image": "large:1"}), "small": (1, {"image": "small:1"})}


@pytest.mark.parametrize(
    "job",
    [
        grouped(written(pytorchjob(1, 2)), "Worker", **TWO),
        grouped(written(jaxjob(3)), "Worker", **TWO),
        grouped(written(paddlejob(0, 3)), "Worker", **TWO),
        grouped(written(xgboostjob(1, 3)), "Worker", **TWO),
        grouped(written(tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, ps=2)), "PS", **TWO),
        grouped(written(mxjob().v1().servers(2).resource()), "Server", **TWO),
        grouped(written(mpijob(3)), "Worker", **TWO),
        grouped(written(mpijob(1)), "Launcher", big=(1, {"image": "big:1"})),
    ],
    ids=lambda job: str(job["kind"]),
)
def test_every_kind_with_a_map_of_types(validation_error: Callable[[Resource], str], job: Resource) -> None:
    assert validation_error(job) == ""


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(sized(), id="no group"),
        pytest.param(sized(1, 3), id="all replicas are in groups"),
        pytest.param(sized(0, 4), id="a group without replicas"),
        pytest.param(changed(lambda group: group.pop("replicas")), id="one replica by default"),
        pytest.param(sized(*[1] * 16, workers=16), id="as many groups as possible"),
        pytest.param(short(count=4, image="large:1", args=["--large"]), id="the short form"),
        pytest.param(
            short(template={"spec": {"containers": [{"name": "pytorch", "image": "large:1"}]}}), id="a DLJob's template"
        ),
    ],
)
def test_good(validation_error: Callable[[Resource], str], job: Resource) -> None:
    assert validation_error(job) == ""


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (sized(2, 3), "the groups have 5 replicas, and replicas is 4: raise replicas, or lower that of a group"),
        (sized(*[0] * 17), "must have at most 16 items"),
        (
            grouped(written(pytorchjob(1, 1)), "Worker", large=(2, {})),
            "the groups have 2 replicas, and replicas is 1",
        ),
        (changed(lambda group: group.update(name="Large")), "name of a group: use lower-case letters, digits and '-'"),
        (changed(lambda group: group.update(name="a" * 64)), "may not be more than 63"),
        (changed(lambda group: group.pop("name")), "name: Required value"),
        (changed(lambda group: group.pop("template")), "template: Required value"),
        (changed(lambda group: group.update(replicas=-1)), "should be greater than or equal to 0"),
        (changed(lambda group: group.update(restartPolicy="Never")), "unknown field"),
        (
            changed(lambda group: group["template"]["spec"]["containers"][0].update(name="main")),
            "requires a container named pytorch, which runs the training, and has",
        ),
        (short(image="large:1", count=5), "the groups have 5 replicas, and count is 4: raise count"),
        (short(), "neither image nor template is given: add one of them"),
        (short(image="x", template={"spec": {"containers": []}}), "move these into the template's container"),
        (short(image="x", replicas=1), "unknown field"),
    ],
)
def test_bad(validation_error: Callable[[Resource], str], job: Resource, message: str) -> None:
    assert message in validation_error(job)


def test_names_are_unique(validation_error: Callable[[Resource], str]) -> None:
    job = sized(1, 1)
    for group in job["spec"]["pytorchReplicaSpecs"]["Worker"]["groups"]:
        group["name"] = "large"
    assert "two groups have the same name: rename one" in validation_error(job)


def test_list_layouts_have_none(validation_error: Callable[[Resource], str]) -> None:
    job = mxjob().v1alpha1().workers(2).entry("Worker", groups=[]).resource()
    assert "unknown field" in validation_error(written(job))


def test_scaling_stops_at_the_groups(api: client.ApiClient, submit: Callable[..., Resource], namespace: str) -> None:
    """So no autoscaler makes a job invalid: its write is refused, with the reason."""
    objects = client.CustomObjectsApi(api)
    submit(sized(1, 2), namespace=namespace)
    where = ("kubeflow.org", "v1", namespace, "pytorchjobs", "example-job")
    objects.patch_namespaced_custom_object_scale(*where, {"spec": {"replicas": 3}})
    with pytest.raises(client.ApiException) as caught:
        objects.patch_namespaced_custom_object_scale(*where, {"spec": {"replicas": 2}})
    assert "the groups have 3 replicas, and replicas is 2: raise replicas" in str(caught.value.body)
    scale: Any = objects.get_namespaced_custom_object_scale(*where)
    assert scale["spec"]["replicas"] == 3
