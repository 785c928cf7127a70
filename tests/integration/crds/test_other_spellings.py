"""Fields of the early operators in another case: those read them, and the API server names the right spelling."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from kubernetes import client
from support.builders import caffe2job, mxjob, tfjob

Job = dict[str, Any]
TFJOB = tfjob("tensorflow.org/v1alpha1", "replicaSpecs", master=1)
KUBEFLOW = tfjob("kubeflow.org/v1alpha1", "replicaSpecs", master=1)
BOARD = {"logDir": "/logs", "volumes": [{"name": "l", "emptyDir": {}}]}


@pytest.mark.parametrize(
    ("job", "edit", "said"),
    [
        (TFJOB, lambda s: s.update(tensorBoard=BOARD), "tensorBoard is not known in this spelling: write tensorboard"),
        (
            KUBEFLOW,
            lambda s: s.update(TensorBoard=BOARD),
            "TensorBoard is not known in this spelling: write tensorboard",
        ),
        (TFJOB, lambda s: s.update(TFImage="x"), "write tfImage"),
        (TFJOB, lambda s: s.update(runtimeId="abcd"), "write RuntimeId"),
        (TFJOB, lambda s: s["replicaSpecs"][0].update(TfReplicaType="MASTER"), "write tfReplicaType"),
        (TFJOB, lambda s: s["replicaSpecs"][0].update(isDefaultPS=True), "write IsDefaultPS"),
        (TFJOB, lambda s: s.update(tensorboard={**BOARD, "servicetype": "NodePort"}), "write serviceType"),
        (mxjob().v1alpha1().resource(), lambda s: s["replicaSpecs"][0].update(psRootPort=9), "write PsRootPort"),
        (mxjob().fioravanzo().resource(), lambda s: s["replicaSpecs"][0].update(MxPort=9), "write mxPort"),
        (mxjob().mpba().resource(), lambda s: s[0].update(Replicas=1), "write replicas"),
        (caffe2job(1), lambda s: s.update(BackendSpecs={}), "write backendSpecs"),
    ],
)
@pytest.mark.parametrize("validation", ["Strict", "Ignore"])
def test_the_right_one_is_named(
    job: Job,
    edit: Callable[[Any], object],
    said: str,
    validation: str,
    api: client.ApiClient,
    crds: None,
    empty_namespace: str,
) -> None:
    job = copy.deepcopy(job)
    job["metadata"] = {"name": "job"}
    edit(job["spec"])
    group, version = job["apiVersion"].split("/")
    with pytest.raises(client.ApiException) as caught:
        client.CustomObjectsApi(api).create_namespaced_custom_object(
            group, version, empty_namespace, f"{job['kind'].lower()}s", job, field_validation=validation, dry_run="All"
        )
    assert said in str(caught.value.body)
