"""Validation of a DLJob by its CRD."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kubernetes import client

Job = dict[str, Any]
TEMPLATE = {"spec": {"containers": [{"name": "jax", "image": "train:1"}], "hostNetwork": True}}


def written(replicas: Any, name: str = "digits", **spec: Any) -> Job:
    return {
        "apiVersion": "dljob.operator/v1",
        "kind": "DLJob",
        "metadata": {"name": name},
        "spec": {"framework": "jax", "replicas": replicas, **spec},
    }


def short(**fields: Any) -> Job:
    return {"image": "train:1", **fields}


CONTAINER = {
    "command": ["python"],
    "args": ["train.py"],
    "env": [{"name": "A", "value": "b"}, {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    "resources": {"limits": {"cpu": 1, "nvidia.com/gpu": "2"}},
}


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(written({"Worker": short()}), id="an image"),
        pytest.param(written({"Worker": short(count=3, restartPolicy="ExitCode", **CONTAINER)}), id="short form"),
        pytest.param(written({"Worker": {"count": 2, "template": TEMPLATE}}), id="template"),
        pytest.param(written({"Any": short(), "Type": short(count=0)}), id="types"),
        pytest.param(
            written({"Worker": short()}, options={"elasticPolicy": {"minReplicas": 1}}, schedulerName="volcano"),
            id="options",
        ),
        pytest.param(
            written({"Worker": short()}, runPolicy={"backoffLimit": 3, "podFailurePolicy": {"rules": []}}),
            id="run policy",
        ),
        pytest.param(written({"Worker": short()}, framework="of_a_user"), id="framework of a user"),
    ],
)
def test_good(validation_error: Callable[[Job], str], job: Job) -> None:
    assert validation_error(job) == ""


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (written({"Worker": short()}, framework=""), "spec.framework"),
        (written({}), "the job has no replica: give at least one type a count above 0"),
        (written({"Worker": short(count=0)}), "the job has no replica: give at least one type a count above 0"),
        (written({"Worker": {"count": 1}}), "neither image nor template is given: add one of them"),
        (written({"Worker": short(template=TEMPLATE)}), "move these into the template's container"),
        (written({"Worker": {"args": ["x"], "template": TEMPLATE}}), "move these into the template's container"),
        (written({"Worker": short(), "worker": short()}), "a replica type occurs twice, in different cases"),
        (written({"Worker": short(replicas=2)}), "unknown field"),
        (written({"Worker": short()}, elasticPolicy={}), "unknown field"),
        (written({"Worker": short(restartPolicy="Sometimes")}), "restartPolicy: Unsupported value"),
        (written({"Worker": short(env=[{"value": "x"}])}), "env[0].name: Required value"),
        (written({"Worker": short()}, name="1st"), "pods are named after the job: use lower-case letters"),
        (written({"Worker": short(count=11)}, name="d" * 54), "may have at most 53 so that the names of its pods"),
        (
            written({"Worker": short(restartPolicy="Always")}, runPolicy={"restartScope": "Job"}),
            "use OnFailure or ExitCode",
        ),
    ],
)
def test_bad(validation_error: Callable[[Job], str], job: Job, message: str) -> None:
    assert message in validation_error(job)


def test_the_framework_is_immutable(api: client.ApiClient, submit: Callable[..., Job], namespace: str) -> None:
    submit(written({"Worker": short()}), namespace=namespace)
    objects = client.CustomObjectsApi(api)
    with pytest.raises(client.ApiException) as caught:
        objects.patch_namespaced_custom_object(
            "dljob.operator", "v1", namespace, "dljobs", "digits", {"spec": {"framework": "pytorch"}}
        )
    assert "framework is immutable: delete the job and create a new one" in str(caught.value.body)
