"""The local cluster as a load run needs it: simulated nodes, the CRDs, the operator's account, its own namespaces."""

from __future__ import annotations

import contextlib
import http.client
import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devtools.definitions import CRDS
from devtools.testbed import account
from devtools.testbed.base.process import exclusive
from devtools.testbed.base.settings import Settings, settings_from
from devtools.testbed.client import APPLY, MERGE, Client
from devtools.testbed.cluster import lifecycle
from devtools.testbed.jobs import JobKind, read_kinds, stored

PODS = "/api/v1/namespaces/{}/pods"
MANY = (PODS, "/api/v1/namespaces/{}/services", "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices")
"""The collections of what jobs own that outgrow the garbage collector, which deletes 20 objects a second, as paths with
a place for the namespace. The EndpointSlices are the Services', of which they have the labels."""
OWNED = (*MANY, "/api/v1/namespaces/{}/configmaps", "/apis/apps/v1/namespaces/{}/deployments")
"""The collections of what jobs own, in the same form."""
OF_THE_CLUSTER = ("kube-root-ca.crt",)
"""Names of objects that Kubernetes puts into every namespace."""
_NAMES = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
_PAUSE = 0.2
_SERVED = 60.0
"""Seconds for all definitions to be served."""


@dataclass(frozen=True)
class Ground:
    """``kubeconfig`` is that of the operator's account, and ``client`` the administrator's."""

    client: Client
    kubeconfig: Path
    folder: Path
    nodes: int
    kinds: tuple[JobKind, ...]

    @contextlib.contextmanager
    def namespace(self, prefix: str, timeout: float = 300.0) -> Iterator[str]:
        """A new namespace, deleted at the end. Raises TimeoutError if it still exists ``timeout`` seconds later."""
        name = f"{prefix}-{uuid.uuid4().hex[:8]}"
        self.client.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        try:
            yield name
        finally:
            release_finalizers(self, name)
            self.client.raw("DELETE", f"/api/v1/namespaces/{name}")
            until(lambda: not self.client.exists(f"/api/v1/namespaces/{name}"), timeout, f"the namespace {name}")


@contextlib.contextmanager
def prepared(folder: Path, nodes: int) -> Iterator[Ground]:
    """Brings up the local cluster, or uses the one that is up, which stays up.

    Raises ClusterError, also while a benchmark or another load run uses the cluster: each would distort the other.
    """
    folder.mkdir(parents=True, exist_ok=True)
    settings = settings_from()
    with exclusive(settings.load_lock, "a benchmark or another load run"):
        lifecycle.up(settings)
        nodes = ensure_nodes(settings, nodes)
        client = Client(settings.kubeconfig)
        install_crds(client)
        account.prepare(client, folder / "kubeconfig")
        try:
            yield Ground(client, folder / "kubeconfig", folder, nodes, read_kinds())
        finally:
            account.remove(client)


def ensure_nodes(settings: Settings, least: int) -> int:
    """Ensure at least ``least`` simulated nodes in the running cluster; returns their number."""
    with lifecycle.locked(settings):
        session, _ = lifecycle.existing(settings)
        nodes = max(least, session.state.kwok_nodes)
        lifecycle.kwok_nodes(session, nodes)
    return nodes


def install_crds(client: Client) -> None:
    """Apply this project's definitions and wait until the API server answers for each of their versions.

    A new definition's first requests may get 404 (not yet served) or 429 (its watch cache is not yet filled).
    Raises TimeoutError after a minute.
    """
    collections = []
    for path in sorted(CRDS.glob("*.yaml")):
        url = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{path.stem}?fieldManager=dljob-bench&force=true"
        spec = client.request("PATCH", url, path.read_bytes(), APPLY)["spec"]
        collections += [
            f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}?limit=1"
            for version in spec["versions"]
            if version["served"]
        ]
    deadline = time.monotonic() + _SERVED
    for collection in collections:
        while (answer := client.raw("GET", collection))[0] != 200:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{collection}: {answer[0]}: {answer[1][:200].decode(errors='replace')}")
            time.sleep(0.1)


def until(wanted: Callable[[], bool], timeout: float, what: str) -> None:
    """Ask until ``wanted()``. Raises TimeoutError with ``what`` still exists."""
    deadline = time.monotonic() + timeout
    while not wanted():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} still exists after {timeout:.0f} s")
        time.sleep(_PAUSE)


def names_in(client: Client, collection: str) -> list[str]:
    """The names of the objects of a collection, without those of the cluster itself. Deeply nested ones count too."""
    connection = client.connect(120)
    try:
        data = b"".join(client.lines(connection, f"{collection}?limit=500", _NAMES))
    finally:
        connection.close()
    names = (item["metadata"]["name"] for item in json.loads(data)["items"] or ())
    return [name for name in names if name not in OF_THE_CLUSTER]


def release_finalizers(ground: Ground, namespace: str) -> None:
    """Remove the finalizers of jobs, which a tenant may have set to ones that no controller serves."""
    for kind in stored(ground.kinds):
        for name in names_in(ground.client, kind.collection(namespace)):
            body = {"metadata": {"finalizers": None}}
            ground.client.raw("PATCH", f"{kind.collection(namespace)}/{name}", body, MERGE)


def left(ground: Ground, namespace: str, collections: Sequence[str] = OWNED) -> list[str]:
    """What still exists of jobs and of what they own, as ``plural/name``."""
    paths = [*_of_jobs(ground, namespace), *(path.format(namespace) for path in collections)]
    return [f"{path.rpartition('/')[2]}/{name}" for path in paths for name in names_in(ground.client, path)]


def _of_jobs(ground: Ground, namespace: str) -> dict[str, dict[str, Any]]:
    """The collections of jobs, each with how to delete it: the garbage collector then deletes what they own."""
    return {kind.collection(namespace): {"propagationPolicy": "Background"} for kind in stored(ground.kinds)}


def clear(ground: Ground, namespace: str, timeout: float) -> None:
    """Delete all jobs of a namespace, and help the garbage collector with ``MANY``, until nothing of them is left.

    Raises TimeoutError with the names of what is left.
    """
    doomed = _of_jobs(ground, namespace)
    deadline = time.monotonic() + timeout
    with ThreadPoolExecutor(len(MANY) + 1) as pool:  # one after the other takes half as long again

        def delete(paths: Mapping[str, dict[str, Any]]) -> None:
            [*pool.map(lambda path: _delete(ground.client, path, paths[path]), paths)]

        delete(doomed)
        release_finalizers(ground, namespace)
        doomed |= {path.format(namespace): {"gracePeriodSeconds": 0} for path in MANY}
        while remaining := left(ground, namespace):
            if time.monotonic() > deadline:
                shown = ", ".join(remaining[:10])
                raise TimeoutError(f"{len(remaining)} objects are left after {timeout:.0f} s: {shown}")
            plurals = {name.partition("/")[0] for name in remaining}
            delete({path: how for path, how in doomed.items() if path.rpartition("/")[2] in plurals})
            time.sleep(_PAUSE)


def _delete(client: Client, collection: str, how: dict[str, Any]) -> None:
    """Delete as much of a collection as the API server does in the 60 s after which it ends its response."""
    with contextlib.suppress(http.client.IncompleteRead):
        client.raw("DELETE", collection, how)
