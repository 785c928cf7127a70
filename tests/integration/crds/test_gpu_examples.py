"""The API server accepts the examples for GPUs: their jobs, their ConfigMaps and the pods that the jobs are made into."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.gpu_examples import FILES, documents, job_of

from dljob_operator.engine.kube import KubeApi

every_file = pytest.mark.parametrize("file", FILES, ids=lambda path: path.name)


@every_file
def test_the_job_is_valid(validation_error: Callable[[dict[str, Any]], str], file: Path) -> None:
    assert validation_error(job_of(file)) == ""


@pytest.fixture
def dry_run(kubeconfig: Path, crds: None, empty_namespace: str) -> Callable[[str, dict[str, Any]], object]:
    """``dry_run("pods", manifest)``. The client of the operator, because the library's takes no number as a quantity."""
    api = KubeApi.connect(kubeconfig)
    query = {"dryRun": "All", "fieldValidation": "Strict"}
    return lambda plural, body: api.request("POST", f"/api/v1/namespaces/{empty_namespace}/{plural}", body, query=query)


@every_file
def test_its_other_objects_are_valid(dry_run: Callable[[str, dict[str, Any]], object], file: Path) -> None:
    for document in documents(file):
        if document["kind"] == "ConfigMap":
            dry_run("configmaps", document)


@every_file
def test_its_templates_are_valid_pods(dry_run: Callable[[str, dict[str, Any]], object], file: Path) -> None:
    """The CRDs keep templates as they are, so that only the creation of a pod shows what is wrong in them."""
    spec = job_of(file)["spec"]
    (field,) = (name for name in spec if name == "replicas" or name.lower().endswith("replicaspecs"))
    replicas = [spec[field]] if "template" in spec[field] else spec[field].values()
    for replica in replicas:
        dry_run("pods", {"metadata": {"name": "template"}, **replica["template"]})
