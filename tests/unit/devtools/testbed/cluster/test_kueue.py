"""What is made of the manifests of Kueue's module, for a Kueue that runs outside of the cluster."""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml
from devtools.testbed.cluster import kueue

ENDPOINT = kueue.Endpoint("192.0.2.1", 9443, "PEM")
BUNDLE = base64.b64encode(b"PEM").decode()


def crd(name: str) -> dict[str, Any]:
    return {"kind": "CustomResourceDefinition", "metadata": {"name": name}, "spec": {"group": "kueue.x-k8s.io"}}


@pytest.fixture
def components(tmp_path: Path) -> Path:
    """A folder like that of the module: two CRDs, of which one has a conversion, and two webhooks."""
    service = {"name": "webhook-service", "namespace": "system"}
    conversion = {"strategy": "Webhook", "webhook": {"clientConfig": {"service": {**service, "path": "/convert"}}}}
    patch = {"metadata": {"name": "workloads.kueue.x-k8s.io"}, "spec": {"conversion": conversion}}
    hook = {"name": "mpod.kb.io", "clientConfig": {"service": {**service, "path": "/mutate--v1-pod"}}}
    files = {
        "crd/kustomization.yaml": [
            {"resources": ["bases/w.yaml", "bases/t.yaml"], "patches": [{"path": "patches/w.yaml"}]}
        ],
        "crd/bases/w.yaml": [crd("workloads.kueue.x-k8s.io")],
        "crd/bases/t.yaml": [crd("topologies.kueue.x-k8s.io")],
        "crd/bases/unused.yaml": [crd("unused.kueue.x-k8s.io")],
        "crd/patches/w.yaml": [patch],
        "webhook/manifests.yaml": [
            {"kind": kind, "metadata": {"name": name}, "webhooks": [hook]}
            for kind, name in (
                ("MutatingWebhookConfiguration", "mutating"),
                ("ValidatingWebhookConfiguration", "valid"),
            )
        ],
    }
    for name, documents in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("---\n" + yaml.safe_dump_all(documents))
    return tmp_path


def test_definitions_convert_through_the_process(components: Path) -> None:
    found = {one["metadata"]["name"]: one["spec"] for one in kueue.definitions(components, ENDPOINT)}
    assert list(found) == ["workloads.kueue.x-k8s.io", "topologies.kueue.x-k8s.io"]
    client_config = {"url": "https://192.0.2.1:9443/convert", "caBundle": BUNDLE}
    assert found["workloads.kueue.x-k8s.io"]["conversion"] == {
        "strategy": "Webhook",
        "webhook": {"clientConfig": client_config},
    }
    assert "conversion" not in found["topologies.kueue.x-k8s.io"]


def test_webhooks_are_those_of_the_namespaces_alone(components: Path) -> None:
    found = kueue.webhooks(components, ENDPOINT, ["a", "b"])
    assert [one["metadata"]["name"] for one in found] == ["kueue-mutating", "kueue-valid"]
    for configuration in found:
        (hook,) = configuration["webhooks"]
        assert hook["clientConfig"] == {"url": "https://192.0.2.1:9443/mutate--v1-pod", "caBundle": BUNDLE}
        (term,) = hook["namespaceSelector"]["matchExpressions"]
        assert (term["operator"], term["values"]) == ("In", ["a", "b"])


def test_a_configuration_with_the_keys_of_a_test() -> None:
    given = {
        "integrations": {"frameworks": ["pod"], "externalFrameworks": ["TFJob.v1.kubeflow.org"]},
        "featureGates": {"TopologyAwareScheduling": True},
    }
    found = kueue.configuration("home", ["a"], ENDPOINT, Path("/certificates"), 8081, given)
    assert found["integrations"] == given["integrations"]
    assert found["featureGates"] == {"VisibilityOnDemand": False, "TopologyAwareScheduling": True}
    assert found["webhook"] == {"host": "192.0.2.1", "port": 9443, "certDir": "/certificates"}
    assert found["managedJobsNamespaceSelector"]["matchExpressions"][0]["values"] == ["a"]
