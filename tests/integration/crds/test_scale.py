"""The kinds with elastic or interchangeable workers have the subresource that `kubectl scale` and autoscalers use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kubernetes import client
from support.builders import jaxjob, paddlejob, pytorchjob

Job = dict[str, Any]


@pytest.mark.parametrize(
    "job", [pytorchjob(worker=2), jaxjob(worker=2), paddlejob(worker=2)], ids=lambda job: str(job["kind"])
)
def test_the_number_of_workers(api: client.ApiClient, submit: Callable[..., Job], namespace: str, job: Job) -> None:
    objects = client.CustomObjectsApi(api)
    name, plural = job["kind"].lower(), f"{job['kind'].lower()}s"
    submit({**job, "metadata": {"name": name}}, namespace=namespace)
    where = ("kubeflow.org", "v1", namespace, plural, name)
    scale: Any = objects.get_namespaced_custom_object_scale(*where)
    assert scale["spec"]["replicas"] == 2
    objects.patch_namespaced_custom_object_scale(*where, {"spec": {"replicas": 3}})
    changed: Any = objects.get_namespaced_custom_object(*where)
    (replicas,) = (value for field, value in changed["spec"].items() if field.endswith("ReplicaSpecs"))
    assert replicas["Worker"]["replicas"] == 3
