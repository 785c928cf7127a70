"""An operator whose account has the rights of deploy/kustomize/base, or less, in two namespaces of the test's own."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest
import yaml
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from devtools.testbed.operator import OperatorProcess
from integration.rights.recorder import Recorder, Right
from integration.rights.support import RBAC, Operator, less, rules_of
from kubernetes import client

from dljob_operator.engine.kube import KubeApi


@pytest.fixture(scope="module")
def kube(kubeconfig: Path) -> KubeApi:
    return KubeApi.connect(kubeconfig)


@contextmanager
def _namespaces(kube: KubeApi) -> Iterator[tuple[str, str]]:
    names = [f"rights-{part}-{uuid.uuid4().hex[:8]}" for part in ("operator", "jobs")]
    for name in names:
        kube.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    try:
        yield names[0], names[1]
    finally:
        for name in names:
            kube.request("DELETE", f"/api/v1/namespaces/{name}")


CLUSTER_SCOPED = {"nodes", "resourceflavors", "workloadpriorityclasses", "priorityclasses"}


@contextmanager
def _account(kube: KubeApi, own: str, watched: str, missing: Right | None) -> Iterator[str]:
    """A service account in `own` with the rights of the manifests but for `missing`; its token."""
    rules = less(rules_of("ClusterRole"), missing)
    of_cluster = [rule for rule in rules if CLUSTER_SCOPED.issuperset(rule["resources"])]
    path = f"/api/v1/namespaces/{own}/serviceaccounts"
    kube.request("POST", path, {"metadata": {"name": "operator"}})
    subjects = [{"kind": "ServiceAccount", "name": "operator", "namespace": own}]
    made = []

    def make(place: str, kind: str, name: str, body: dict) -> None:  # type: ignore[type-arg]
        where = f"{RBAC}/{f'namespaces/{place}/' if place else ''}{kind}"
        kube.request("POST", where, {"metadata": {"name": name}, **body})
        made.append(f"{where}/{name}")

    def bind(place: str, role: str, name: str) -> None:
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name}
        kind = "rolebindings" if place else "clusterrolebindings"
        make(place, kind, name, {"roleRef": reference, "subjects": subjects})

    try:
        # what is in a namespace is granted in the jobs' namespace only: the Role has to do in the operator's own
        make("", "clusterroles", f"{own}", {"rules": rules})
        bind(watched, "ClusterRole", own)
        make("", "clusterroles", f"{own}-cluster", {"rules": of_cluster})
        bind("", "ClusterRole", f"{own}-cluster")
        make(own, "roles", "config", {"rules": rules_of("Role")})
        bind(own, "Role", "config")
        yield str(kube.request("POST", f"{path}/operator/token", {"spec": {}})["status"]["token"])
    finally:
        for one in reversed(made):
            with contextlib.suppress(ApiError):
                kube.request("DELETE", one)


Start = Callable[..., AbstractContextManager[Operator]]


@pytest.fixture
def start(
    kube: KubeApi, api: client.ApiClient, crds: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Start]:
    """Start an operator whose account lacks one right, or none."""

    @contextmanager
    def started(missing: Right | None = None) -> Iterator[Operator]:
        with ExitStack() as stack:
            own, watched = stack.enter_context(_namespaces(kube))
            token = stack.enter_context(_account(kube, own, watched, missing))
            recorder = Recorder(kube.server, str(api.configuration.ssl_ca_cert))
            address = stack.enter_context(recorder.listening())
            config = tmp_path / f"{own}.kubeconfig"
            config.write_text(yaml.safe_dump(_kubeconfig(address, token)))
            monkeypatch.setenv("POD_NAMESPACE", own)
            log = tmp_path / f"{own}.log"
            log.touch()
            process = stack.enter_context(OperatorProcess(config, log, ("--namespace", watched)))
            yield Operator(kube, process, recorder, config, log, own, watched)

    yield started


def _kubeconfig(address: str, token: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": address}}],
        "users": [{"name": "test", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }
