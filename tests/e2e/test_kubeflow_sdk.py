"""kubeflow-training, the Python client that users of training-operator have: its methods with every kind that it knows."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from devtools.testbed.base.settings import cache_dir_from
from support import kubeflow_sdk
from support.live_jobs import SHELL_IMAGE, Cluster

PODS = {
    "TFJob": ["chief-0", "ps-0", "worker-0"],
    "PyTorchJob": ["master-0", "worker-0"],
    "XGBoostJob": ["master-0", "worker-0"],
    "PaddleJob": ["worker-0"],
    "JAXJob": ["worker-0"],
    "MXJob": ["scheduler-0", "server-0", "worker-0"],
    "MPIJob": ["launcher", "worker-0"],
}
DECIDING = {
    "TFJob": "chief-0",
    "PyTorchJob": "master-0",
    "XGBoostJob": "master-0",
    "PaddleJob": "worker-0",
    "JAXJob": "worker-0",
    "MXJob": "scheduler-0",
    "MPIJob": "launcher",
}
"""The pods that end the job. They have the label ``training.kubeflow.org/job-role: master``, by which the client chooses
the pod whose log it reads."""
KINDS = {
    "1.7.0": ("TFJob", "PyTorchJob", "XGBoostJob", "PaddleJob", "MXJob", "MPIJob"),
    "1.8.1": ("TFJob", "PyTorchJob", "XGBoostJob", "PaddleJob", "MXJob", "MPIJob"),
    "1.9.4": ("TFJob", "PyTorchJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob"),
}


@pytest.fixture(scope="module", params=kubeflow_sdk.VERSIONS)
def sdk(request: pytest.FixtureRequest) -> tuple[str, Path]:
    return request.param, kubeflow_sdk.environment(cache_dir_from(os.environ), request.param)


def test_a_job_is_followed_from_its_creation_to_its_end(sdk: tuple[str, Path], here: Cluster) -> None:
    version, bin_dir = sdk

    def use(kind: str) -> dict[str, Any]:
        def end_the_training(container: str) -> None:
            here.release(f"sdk-{kind.lower()}-{DECIDING[kind]}", container)

        return kubeflow_sdk.use(bin_dir, here.kubeconfig, here.namespace, kind, SHELL_IMAGE, end_the_training)

    with ThreadPoolExecutor(len(KINDS[version])) as pool:
        for kind, found in zip(KINDS[version], pool.map(use, KINDS[version]), strict=True):
            name = f"sdk-{kind.lower()}"
            assert found["started"] == ["Created", "Running"], kind
            assert dict(found["conditions"]) == {"Created": "True", "Running": "False", "Succeeded": "True"}, kind
            assert [one for one, is_true in found["is"].items() if is_true] == ["created", "succeeded"], kind
            assert (found["read"], found["listed"], found["labels"]) == (name, [name], {"changed": "yes"}), kind
            assert found["pods"] == [f"{name}-{pod}" for pod in PODS[kind]]
            assert found["master"] == [f"{name}-{DECIDING[kind]}"], kind
            assert found["worker 0"] == [f"{name}-worker-0"], kind
            if version != "1.7.0":  # which only prints them
                assert found["logs"][f"{name}-{DECIDING[kind]}"] == "trained\n", kind
            assert found["gone"], kind
