"""Who may do what with jobs: the ClusterRoles that Kubernetes adds to admin, edit and view."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from devtools.build.generate import files
from devtools.paths import ROOT
from integration.engine.support import until
from integration.rights.support import BASE, OPTIONAL, RBAC

from dljob_operator.engine.kube import KubeApi

KINDS = [
    pytest.param(kind.group, f"{kind.name.lower()}s", bool(kind.scale), id=f"{kind.name}.{kind.group}")
    for framework in files.frameworks(ROOT)
    for kind in framework.kinds
]
MINE = ("users_edit", "users_view")
THEIRS = sorted(path.stem for path in (OPTIONAL / "kubeflow-roles").glob("kubeflow_*.yaml"))


def _role(stem: str) -> dict[str, Any]:
    folder = BASE if stem in MINE else OPTIONAL / "kubeflow-roles"
    found: dict[str, Any] = yaml.safe_load((folder / f"{stem}.yaml").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def namespace(kube: KubeApi, crds: None) -> Iterator[str]:
    """A namespace in which accounts have the rights of admin, edit, view and of the roles of Kubeflow's names."""
    name = f"rights-users-{uuid.uuid4().hex[:8]}"
    made = []
    kube.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    try:
        for stem in (*MINE, *THEIRS):
            role = _role(stem)
            # names of this test: the cluster may have those of an installation
            role["metadata"]["name"] = f"{role['metadata']['name']}-{name}"
            kube.request("POST", f"{RBAC}/clusterroles", role)
            made.append(role["metadata"]["name"])
        accounts = {"admin": "admin", "edit": "edit", "view": "view"}
        accounts |= {stem: f"{_role(stem)['metadata']['name']}-{name}" for stem in THEIRS}
        for account, role_name in accounts.items():
            subject = {"kind": "ServiceAccount", "name": account.replace("_", "-"), "namespace": name}
            reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role_name}
            body = {"metadata": {"name": subject["name"]}, "roleRef": reference, "subjects": [subject]}
            kube.request("POST", f"{RBAC}/namespaces/{name}/rolebindings", body)
        # a controller adds the rules to the roles of Kubernetes
        until(lambda: may(kube, name, "view", "get", "dljob.operator", "dljobs"), 30)
        until(lambda: may(kube, name, "admin", "create", "dljob.operator", "dljobs"), 30)
        yield name
    finally:
        for one in made:
            kube.request("DELETE", f"{RBAC}/clusterroles/{one}")
        kube.request("DELETE", f"/api/v1/namespaces/{name}")


def may(kube: KubeApi, namespace: str, account: str, verb: str, group: str, resource: str) -> bool:
    """The API server's answer for an account."""
    resource, _, part = resource.partition("/")
    attributes = {"namespace": namespace, "verb": verb, "group": group, "resource": resource, "subresource": part}
    user = f"system:serviceaccount:{namespace}:{account.replace('_', '-')}"
    review = kube.request(
        "POST",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        {"spec": {"user": user, "resourceAttributes": attributes}},
    )
    return bool(review["status"]["allowed"])


@pytest.mark.parametrize(("group", "plural", "scale"), KINDS)
@pytest.mark.parametrize("account", ["admin", "edit", "kubeflow_training_edit", "kubeflow_mpijobs_admin"])
def test_who_may_edit(account: str, group: str, plural: str, scale: bool, kube: KubeApi, namespace: str) -> None:
    for verb in ("create", "get", "list", "watch", "patch", "update", "delete", "deletecollection"):
        assert may(kube, namespace, account, verb, group, plural), verb
    assert may(kube, namespace, account, "get", group, f"{plural}/status")
    for verb in ("patch", "update"):
        assert not may(kube, namespace, account, verb, group, f"{plural}/status"), "only the operator writes a status"
        assert may(kube, namespace, account, verb, group, f"{plural}/scale") is scale


@pytest.mark.parametrize(("group", "plural", "scale"), KINDS)
@pytest.mark.parametrize("account", ["view", "kubeflow_training_view"])
def test_who_may_only_read(account: str, group: str, plural: str, scale: bool, kube: KubeApi, namespace: str) -> None:
    for verb in ("get", "list", "watch"):
        assert may(kube, namespace, account, verb, group, plural), verb
    for verb in ("create", "patch", "update", "delete", "deletecollection"):
        assert not may(kube, namespace, account, verb, group, plural), verb
    for verb in ("patch", "update"):
        assert not may(kube, namespace, account, verb, group, f"{plural}/status")
        assert not may(kube, namespace, account, verb, group, f"{plural}/scale")
    assert may(kube, namespace, account, "get", group, f"{plural}/scale") is scale


def test_every_role_is_added_to_those_of_kubeflow_profiles() -> None:
    for stem in (*MINE, *THEIRS):
        labels = _role(stem)["metadata"]["labels"]
        assert any(label.startswith("rbac.authorization.kubeflow.org/aggregate-to-kubeflow-") for label in labels), stem
