"""Least privilege: the operator's ClusterRole grants exactly the permissions that these tests observe in use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
from ansible_collections.dljob.operator.plugins.module_utils.api import rest_client
from ansible_collections.dljob.operator.plugins.module_utils.api.cluster_info import OperatorSettings
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import reconcile
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import KUEUE_GROUP
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from devtools.build.olm import csv, sources
from devtools.definitions import definitions
from integration.engine.support import remove_crd, until
from integration.rights.conftest import Start
from integration.rights.recorder import Recorder, Right, request_of
from integration.rights.support import (
    Operator,
    Resource,
    example,
    granted,
    mpijob_v1_example,
    mxjob_example,
    rules_of,
    unschedulable,
)
from support.builders import MXNET, pytorchjob
from support.scripted_server import Exchange, scripted

from dljob_operator.engine.kube import KubeApi
from dljob_operator.engine.lifecycle.crds import install_crds

KINDS = [tuple(name.split(".", 1)) for name in definitions()]
"""The plural and the group of each kind of jobs."""
NOT_ASKED_FOR = {
    # OpenShift's admission asks for them when an account sets blockOwnerDeletion; that the operator sets it is asserted
    # below
    Right(group, f"{plural}/finalizers", "update")
    for plural, group in KINDS
}
NOT_ASKED_FOR |= {
    # an account can give only rights that it has: test_missing_rights.py shows what happens without them
    Right("", "pods/exec", "create"), Right("", "pods/exec", "get"),
}  # fmt: skip
ALIKE = {Right(group, plural, "get") for plural, group in KINDS}
"""Asked for where a spec has changed, by the same code for all kinds: not each job here has such a change."""
ROUTES = "routes.route.openshift.io"


@pytest.mark.parametrize(
    ("method", "url", "right"),
    [
        ("GET", "/api/v1/namespaces/a/pods?labelSelector=x", ("", "pods", "list")),
        ("GET", "/api/v1/pods?watch=true", ("", "pods", "watch")),
        ("GET", "/api/v1/namespaces/a/pods/p", ("", "pods", "get")),
        ("POST", "/apis/apps/v1/namespaces/a/deployments", ("apps", "deployments", "create")),
        ("PATCH", "/apis/kubeflow.org/v1/namespaces/a/mxjobs/m/status", ("kubeflow.org", "mxjobs/status", "patch")),
        ("PUT", "/api/v1/namespaces/a/services/s", ("", "services", "update")),
        ("DELETE", "/api/v1/namespaces/a/pods/p", ("", "pods", "delete")),
        ("DELETE", "/api/v1/namespaces/a/pods", ("", "pods", "deletecollection")),
        ("GET", "/api/v1/namespaces/a", ("", "namespaces", "get")),
        ("GET", "/api/v1/nodes", ("", "nodes", "list")),
    ],
)
def test_a_request_is_one_right(method: str, url: str, right: tuple[str, str, str]) -> None:
    request = request_of(method, url)
    assert request is not None
    assert request.right == right


@pytest.mark.parametrize("url", ["/version", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/kubeflow.org/v1"])
def test_discovery_is_none(url: str) -> None:
    assert request_of("GET", url) is None


@pytest.mark.parametrize("texts", [(), ("deprecated",), ("unknown field", "deprecated")])
def test_a_warning_of_the_server_is_recorded(texts: tuple[str, ...]) -> None:
    def respond(exchange: Exchange) -> None:
        exchange.handler.send_response(200)
        for text in texts:
            exchange.handler.send_header("Warning", f'299 - "{text}"')
        exchange.handler.send_header("Content-Length", "0")
        exchange.handler.end_headers()

    with scripted(respond) as server:
        recorder = Recorder(server.url, "")
        with recorder.listening() as address:
            assert urllib3.request("GET", f"{address}/api/v1/pods").status == 200
    assert recorder.warnings == {("GET", "/api/v1/pods", f'299 - "{text}"') for text in texts}


@pytest.fixture
def openshift(kube: KubeApi, tmp_path: Path) -> Iterator[None]:
    """A definition as small as it gets stands for OpenShift's Routes."""
    folder = tmp_path / "openshift"
    folder.mkdir()
    (folder / "routes.yaml").write_text(
        """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: routes.route.openshift.io}
spec:
  group: route.openshift.io
  scope: Namespaced
  names: {kind: Route, plural: routes, singular: route, listKind: RouteList}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
    )
    install_crds(kube, folder)

    def listed() -> bool:
        try:
            kube.get("/apis/route.openshift.io/v1/routes")
        except ApiError as error:
            assert error.status in (404, 429), error  # the storage of a new kind takes a moment more
            return False
        return True

    until(listed, "Routes are served")
    yield
    remove_crd(kube, ROUTES)


def ends_and_goes(operator: Operator, example: Resource, name: str) -> str:
    """A job of the example's kind, cleaned up after its end and deleted: every kind that can say so does."""
    job = unschedulable(example)
    if isinstance(job["spec"], dict):
        for field in ("cleanPodPolicy", "cleanupPodPolicy", "tensorboard"):
            job["spec"].pop(field, None)
        job["spec"]["runPolicy"] = {"cleanPodPolicy": "All", "ttlSecondsAfterFinished": 0}
    return operator.create(job, name)


def tensorboard(operator: Operator) -> None:
    """TensorBoard's Deployment, Service and Route: made, changed, bent and mended, taken away."""
    template = {"spec": {"containers": [{"name": "tensorflow", "image": "dljob/shell:1"}]}}
    manifest = {
        "apiVersion": "tensorflow.org/v1alpha1",
        "kind": "TfJob",
        "spec": {
            "tensorboard": {"logDir": "/logs"},
            # a parameter server without a template runs a program that lies in a ConfigMap
            "replicaSpecs": [
                {"replicas": 1, "tfReplicaType": "MASTER", "template": template},
                {"replicas": 1, "tfReplicaType": "PS"},
            ],
        },
    }
    path = operator.create(manifest, "tensorboard")
    routes = f"/apis/route.openshift.io/v1/namespaces/{operator.watched}/routes"

    def shown() -> list[dict[str, Any]]:
        return operator.owned("apps/v1/deployments", path)

    (first,) = operator.until(shown, "TensorBoard is deployed")
    (route,) = operator.until(lambda: operator.kube.get(routes)["items"], "TensorBoard has a Route")
    assert operator.owned("configmaps", path), "the default parameter server's program"
    services = operator.owned("services", path)
    operator.patch(f"{routes}/{route['metadata']['name']}", {"spec": {"to": {"name": "elsewhere"}}})
    operator.patch(path, {"spec": {"tensorboard": {"logDir": "/others", "serviceType": "LoadBalancer"}}})
    operator.until(lambda: shown()[0]["metadata"]["generation"] > first["metadata"]["generation"], "it is changed")
    name = f"{routes}/{route['metadata']['name']}"
    operator.until(lambda: operator.kube.get(name)["spec"]["to"]["name"] != "elsewhere", "the Route is mended")
    operator.patch(path, {"spec": {"tensorboard": None}})
    operator.until(
        lambda: not shown() and len(operator.owned("services", path)) < len(services), "TensorBoard is deleted"
    )
    operator.until(lambda: not operator.kube.get(routes)["items"], "and its Route")


def autoscaler(operator: Operator) -> None:
    """The HorizontalPodAutoscaler of elastic workers: made, changed, taken away."""
    job = unschedulable(pytorchjob(worker=1))
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
    }
    job["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 2, "metrics": [metric]}
    path = operator.create(job, "autoscaler")

    def bounds() -> list[int]:
        return [
            found["spec"]["maxReplicas"] for found in operator.owned("autoscaling/v2/horizontalpodautoscalers", path)
        ]

    operator.until(lambda: bounds() == [2], "it is scaled")
    operator.patch(path, {"spec": {"elasticPolicy": {"maxReplicas": 3}}})
    operator.until(lambda: bounds() == [3], "its bounds are changed")
    operator.patch(path, {"spec": {"elasticPolicy": {"metrics": None}}})
    operator.until(lambda: bounds() == [], "it is scaled no more")


def stops(operator: Operator) -> None:
    """A job that is suspended loses its pods."""
    path = operator.create(mxjob_example(), "stops")
    operator.until(lambda: operator.owned("pods", path), "it has pods")
    operator.patch(path, {"spec": {"runPolicy": {"suspend": True}}})
    operator.until(lambda: not operator.owned("pods", path), "they are deleted")


def large(operator: Operator) -> None:
    """What its processes read alike lies in a ConfigMap, which goes once the job is over."""
    job = unschedulable(mxjob_example())
    job["spec"]["runPolicy"] = {"cleanPodPolicy": "All"}
    job["spec"]["mxReplicaSpecs"]["Worker"]["replicas"] = 60
    path = operator.create(job, "large")
    operator.until(lambda: len(operator.owned("pods", path)) > 60, "it has pods")
    assert operator.owned("configmaps", path)
    operator.succeed(path, "scheduler")
    operator.until(lambda: not operator.owned("configmaps", path), "nothing is left to read")


def launched(operator: Operator) -> None:
    """The list of hosts of an MPIJob follows its workers, and its launcher goes when it is suspended."""
    path = operator.create(example("kubeflow.org/v2beta1", "MPIJob"), "launched")
    operator.until(lambda: operator.owned("batch/v1/jobs", path), "it has a launcher")
    assert operator.owned("secrets", path)
    operator.patch(path, {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 3}}}})

    def hosts() -> str:
        (config,) = operator.owned("configmaps", path)
        return str(config["data"]["hostfile"])

    operator.until(lambda: hosts().count("slots") == 3, "it has a third host")
    operator.patch(path, {"spec": {"runPolicy": {"suspend": True}}})
    operator.until(lambda: not operator.owned("batch/v1/jobs", path), "it has no launcher")


def launched_by_kubectl(operator: Operator) -> None:
    """The launcher of an MPIJob v1 comes with the right to reach its workers, and another account gets it in turn."""
    path = operator.create(mpijob_v1_example(), "kubectl")
    group = "rbac.authorization.k8s.io/v1"

    def workers() -> list[str]:
        (role,) = operator.owned(f"{group}/roles", path)
        return [name for rule in role["rules"] for name in rule.get("resourceNames", ())]

    operator.until(lambda: len(operator.owned("pods", path)) == 2, "it has workers")
    operator.become_ready(path)
    operator.until(lambda: len(operator.owned("pods", path)) == 3, "it has a launcher")
    assert len(workers()) == 2
    account = {"template": {"spec": {"serviceAccountName": "default"}}}
    operator.patch(path, {"spec": {"mpiReplicaSpecs": {"Launcher": account}}})

    def subject() -> str:
        (binding,) = operator.owned(f"{group}/rolebindings", path)
        return str(binding["subjects"][0]["name"])

    operator.until(lambda: subject() == "default", "another account has the right")


def waits_for_a_volume(operator: Operator) -> None:
    """Why a pod does not start is only in its Events."""
    job = mxjob_example()
    for replica in job["spec"]["mxReplicaSpecs"].values():
        spec = replica["template"]["spec"]
        spec["volumes"] = [{"name": "data", "secret": {"secretName": "nope"}}]
        spec["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
        spec["containers"][0].pop("resources", None)
    path = operator.create(job, "volume", is_schedulable=True)
    operator.until(lambda: "FailedMount: " in (operator.status(path).get("reason") or ""), "the cause is reported")


def test_every_right_is_used(start: Start, openshift: None) -> None:
    # test_gang_rights.py and test_kueue_rights.py have the others
    others = ("podgroups", "priorityclasses")
    roles = {
        right
        for right in granted(rules_of("ClusterRole"))
        if right.resource not in others and right.group != KUEUE_GROUP
    }
    with start() as operator:
        operator.process.wait_ready()
        recorder = operator.recorder
        # an answer that was lost: whose is the object that has the name?
        recorder.lost = {right for right in roles if right.verb == "create" and right.resource in
                         ("pods", "services", "configmaps", "deployments", "horizontalpodautoscalers",
                          "secrets", "jobs", "serviceaccounts", "roles", "rolebindings")}  # fmt: skip
        # a status that cannot be written twice in a row is one Event, counted up
        recorder.broken[Right("kubeflow.org", "caffe2jobs/status", "patch")] = 2
        tensorboard(operator)
        autoscaler(operator)
        stops(operator)
        large(operator)
        launched(operator)
        launched_by_kubectl(operator)
        waits_for_a_volume(operator)
        every = csv.examples(sources.read())
        jobs = {f"ends-{number}": one for number, one in enumerate(every)}
        paths = {name: ends_and_goes(operator, one, name) for name, one in jobs.items()}
        for path in paths.values():
            pods = operator.until(lambda path=path: operator.owned("pods", path), f"{path} has pods")
            assert all(pod["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] for pod in pods)
            operator.succeed(path)
        for name, path in paths.items():
            if isinstance(jobs[name]["spec"], dict):
                operator.until(lambda path=path: operator.get(path) is None, f"{path} is deleted")
            else:  # the flavor has no field for a time to live
                operator.until(lambda path=path: operator.status(path).get("completionTime"), f"{path} has ended")
        assert recorder.lost == set(), "not asked for"
        # the recorder notes a request after its response, and the last deletion is visible before that
        with contextlib.suppress(AssertionError):
            operator.until(lambda: roles - recorder.rights <= NOT_ASKED_FOR | ALIKE, "every right is used")
        used = recorder.rights
        assert roles - used - NOT_ASKED_FOR - ALIKE == set(), "granted, but never used: remove it"
        assert used - roles == set(), "used, and granted by something else than the ClusterRole"
        assert roles >= NOT_ASKED_FOR | ALIKE
        assert ALIKE & used
        assert NOT_ASKED_FOR & used == set()
        assert not recorder.refused, operator.log
        assert recorder.warnings == set(), "the API server warns of a request, such as one to a deprecated API"


def test_the_rights_in_the_operators_own_namespace_are_used(
    start: Start, kube: KubeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine lists and watches its ConfigMap; a run without an engine's watch gets it."""
    with start() as operator:
        operator.process.wait_ready()
        recorder = operator.recorder
        job = unschedulable(mxjob_example())
        template = job["spec"]["mxReplicaSpecs"]["Worker"]["template"]
        template["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}}
        with rest_client.connect(str(operator.kubeconfig)) as connected:
            metadata = {"name": "cold", "namespace": operator.watched, "uid": "u", "resourceVersion": "1"}
            settings = OperatorSettings(config_namespaces=(operator.own,))
            context = Context(connected, Reader(connected), settings, dry_run=True)
            reconcile(context, {**job, "metadata": metadata}, MXNET)
        own = {one.right for one in recorder.used if one.namespace == operator.own}
        assert own == granted(rules_of("Role"))
