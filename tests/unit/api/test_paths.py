"""API paths of objects."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api import paths
from support.builders import mxjob


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("MXJob", "mxjobs"),
        ("Pod", "pods"),
        ("Service", "services"),
        ("Box", "boxes"),
        ("Class", "classes"),
        ("Branch", "branches"),
    ],
)
def test_plural(kind: str, plural: str) -> None:
    assert paths.plural(kind) == plural


def test_core_and_other_groups() -> None:
    assert paths.collection("v1", "Pod", "ns") == "/api/v1/namespaces/ns/pods"
    assert paths.collection("kubeflow.org/v1", "MXJob", "ns") == "/apis/kubeflow.org/v1/namespaces/ns/mxjobs"


def test_one_object() -> None:
    job = mxjob("digits").fioravanzo().resource()
    assert paths.object_path(job) == "/apis/fioravanzo.org/v1alpha1/namespaces/default/mxjobs/digits"
    assert paths.object_path(job, "status").endswith("/mxjobs/digits/status")
