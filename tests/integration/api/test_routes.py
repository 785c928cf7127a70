"""A Route to a job's TensorBoard against a real API server, on which a definition as small as it gets stands for OpenShift."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import reconcile
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient, connect
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import OWNED_KINDS
from ansible_collections.dljob.operator.plugins.module_utils.values import constants
from kubernetes import client, watch
from support.builders import OWN_OPERATOR, TENSORFLOW, tfjob

Resource = dict[str, Any]
GROUP, VERSION = "route-test.example.com", "v1"


def routes_are(monkeypatch: pytest.MonkeyPatch, api_version: str) -> None:
    monkeypatch.setattr(constants, "ROUTE_API_VERSION", api_version)
    monkeypatch.setitem(OWNED_KINDS, "Route", dataclasses.replace(OWNED_KINDS["Route"], api_version=api_version))  # type: ignore[arg-type]


@pytest.fixture
def openshift(crds: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Routes are served, by the definition of tests/crds/. The real group is in tests/integration/rights."""
    routes_are(monkeypatch, f"{GROUP}/{VERSION}")


@pytest.fixture
def rest_client(kubeconfig: Path) -> Iterator[RestClient]:
    with connect(str(kubeconfig)) as connected:
        yield connected


@pytest.fixture
def custom(api: client.ApiClient, crds: None) -> client.CustomObjectsApi:
    return client.CustomObjectsApi(api)


@pytest.fixture
def job(custom: client.CustomObjectsApi, namespace: str) -> Callable[..., Resource]:
    """Create a job with a TensorBoard, or edit it; the object as the API server has it."""
    where = ("tensorflow.org", "v1alpha1", namespace, "tfjobs")

    def make(**tensorboard: Any) -> Resource:
        made = tfjob(master=1)
        made["metadata"] = {"name": "shown", "labels": OWN_OPERATOR}
        made["spec"]["tensorboard"] = {"logDir": "/logs", **tensorboard}
        return dict(custom.create_namespaced_custom_object(*where, made))

    return make


def read(custom: client.CustomObjectsApi, namespace: str) -> list[Resource]:
    return list(custom.list_namespaced_custom_object(GROUP, VERSION, namespace, "routes")["items"])


def fresh(custom: client.CustomObjectsApi, namespace: str) -> Resource:
    return dict(custom.get_namespaced_custom_object("tensorflow.org", "v1alpha1", namespace, "tfjobs", "shown"))


def test_made_kept_mended_and_gone_with_the_tensorboard(
    openshift: None,
    rest_client: RestClient,
    custom: client.CustomObjectsApi,
    namespace: str,
    job: Callable[..., Resource],
) -> None:
    made = job()
    reconcile(Context(rest_client, Reader(rest_client)), made, TENSORFLOW)
    (route,) = read(custom, namespace)
    assert route["metadata"]["name"] == "tensorboard-76no"
    (owner,) = route["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (made["metadata"]["uid"], True)
    assert route["spec"]["to"] == {"kind": "Service", "name": "tensorboard-76no"}

    # what the router writes into it stays, and is no reason to write again
    route["spec"] |= {"host": "page.example.com", "to": {**route["spec"]["to"], "weight": 100}}
    custom.replace_namespaced_custom_object(GROUP, VERSION, namespace, "routes", "tensorboard-76no", route)
    (before,) = read(custom, namespace)
    reconcile(Context(rest_client, Reader(rest_client)), fresh(custom, namespace), TENSORFLOW)
    assert read(custom, namespace) == [before]

    # what somebody bent is mended
    bent = copy.deepcopy(before)
    bent["spec"]["port"] = {"targetPort": "other"}
    custom.replace_namespaced_custom_object(GROUP, VERSION, namespace, "routes", "tensorboard-76no", bent)
    reconcile(Context(rest_client, Reader(rest_client)), fresh(custom, namespace), TENSORFLOW)
    (mended,) = read(custom, namespace)
    assert mended["spec"] == before["spec"]

    edited = fresh(custom, namespace)
    del edited["spec"]["tensorboard"]
    edited = dict(
        custom.replace_namespaced_custom_object("tensorflow.org", "v1alpha1", namespace, "tfjobs", "shown", edited)
    )
    reconcile(Context(rest_client, Reader(rest_client)), edited, TENSORFLOW)
    assert read(custom, namespace) == []
    assert client.AppsV1Api(custom.api_client).list_namespaced_deployment(namespace).items == []


def test_a_route_of_another_owner_is_kept_and_reported(
    openshift: None,
    rest_client: RestClient,
    custom: client.CustomObjectsApi,
    namespace: str,
    job: Callable[..., Resource],
) -> None:
    theirs = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Route",
        "metadata": {"name": "tensorboard-76no"},
        "spec": {"to": {"kind": "Service", "name": "theirs"}},
    }
    custom.create_namespaced_custom_object(GROUP, VERSION, namespace, "routes", theirs)
    reconcile(Context(rest_client, Reader(rest_client)), job(), TENSORFLOW)
    (route,) = read(custom, namespace)
    assert route["spec"] == theirs["spec"]
    status = fresh(custom, namespace)["status"]
    assert "exists and does not belong to this job" in status["reason"]
    assert status["state"] == "Running"


def test_a_dry_run_writes_none(
    openshift: None,
    rest_client: RestClient,
    custom: client.CustomObjectsApi,
    namespace: str,
    job: Callable[..., Resource],
) -> None:
    reconcile(Context(rest_client, Reader(rest_client), dry_run=True), job(), TENSORFLOW)
    assert read(custom, namespace) == []


def test_where_routes_are_not_served_nothing_fails(
    rest_client: RestClient,
    custom: client.CustomObjectsApi,
    namespace: str,
    job: Callable[..., Resource],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As everywhere but on OpenShift; the definition of the tests above has another group here."""
    routes_are(monkeypatch, "route.example.com/v1")
    reconcile(Context(rest_client, Reader(rest_client)), job(), TENSORFLOW)
    status = fresh(custom, namespace)["status"]
    assert (status["state"], status["reason"]) == ("Running", "")
    deployments = client.AppsV1Api(custom.api_client).list_namespaced_deployment(namespace).items
    assert [d.metadata.name for d in deployments] == ["tensorboard-76no"]


def test_it_goes_with_the_job(
    openshift: None,
    rest_client: RestClient,
    custom: client.CustomObjectsApi,
    namespace: str,
    job: Callable[..., Resource],
) -> None:
    reconcile(Context(rest_client, Reader(rest_client)), job(), TENSORFLOW)
    listed = custom.list_namespaced_custom_object(GROUP, VERSION, namespace, "routes")
    assert len(listed["items"]) == 1
    custom.delete_namespaced_custom_object("tensorflow.org", "v1alpha1", namespace, "tfjobs", "shown")
    for event in watch.Watch().stream(
        custom.list_namespaced_custom_object,
        GROUP,
        VERSION,
        namespace,
        "routes",
        resource_version=listed["metadata"]["resourceVersion"],
        timeout_seconds=90,  # the garbage collector finds a new kind up to half a minute later
    ):
        if event["type"] == "DELETED":
            return
    pytest.fail("the Route outlives its job")
