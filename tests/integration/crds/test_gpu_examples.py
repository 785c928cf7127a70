"""The API server accepts the examples for GPUs: their jobs, their ConfigMaps and the pods that the jobs are made into."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from support.gpu_examples import FILES, documents, job_of

every_file = pytest.mark.parametrize("file", FILES, ids=lambda path: path.name)


@every_file
def test_the_job_is_valid(validation_error: Callable[[dict[str, Any]], str], file: Path) -> None:
    assert validation_error(job_of(file)) == ""


@every_file
def test_its_other_objects_are_valid(api: client.ApiClient, empty_namespace: str, file: Path) -> None:
    core = client.CoreV1Api(api)
    for document in documents(file):
        if document["kind"] == "ConfigMap":
            core.create_namespaced_config_map(empty_namespace, document, dry_run="All", field_validation="Strict")


@every_file
def test_its_templates_are_valid_pods(api: client.ApiClient, empty_namespace: str, file: Path) -> None:
    """The CRDs keep templates as they are, so that only the creation of a pod shows what is wrong in them."""
    core = client.CoreV1Api(api)
    spec = job_of(file)["spec"]
    (field,) = (name for name in spec if name == "replicas" or name.lower().endswith("replicaspecs"))
    replicas = [spec[field]] if "template" in spec[field] else spec[field].values()
    for replica in replicas:
        pod = {"metadata": {"name": "template"}, **replica["template"]}
        core.create_namespaced_pod(empty_namespace, pod, dry_run="All", field_validation="Strict")
