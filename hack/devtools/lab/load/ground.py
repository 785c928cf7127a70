"""The local cluster as a load run needs it: simulated nodes, the CRDs, the operator's account, its own namespaces."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from devtools.lab.bench import account, cli
from devtools.lab.bench.client import MERGE, Client, Refused
from devtools.lab.load.kinds import JobKind, read_kinds, stored
from devtools.testbed.base.process import exclusive
from devtools.testbed.base.settings import settings_from
from devtools.testbed.cluster import lifecycle

PODS = "/api/v1/namespaces/{}/pods"
MANY = (PODS, "/api/v1/namespaces/{}/services", "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices")
"""The collections of what jobs own that outgrow the garbage collector, which deletes 20 objects a second, as paths with
a place for the namespace. The EndpointSlices are the Services', of which they have the labels."""
OWNED = (*MANY, "/api/v1/namespaces/{}/configmaps", "/apis/apps/v1/namespaces/{}/deployments")
"""The collections of what jobs own, in the same form."""
OF_THE_CLUSTER = ("kube-root-ca.crt",)
"""Names of objects that Kubernetes puts into every namespace."""
_PAUSE = 0.2


@dataclass(frozen=True)
class Ground:
    """``kubeconfig`` is that of the operator's account, and ``client`` the administrator's."""

    client: Client
    kubeconfig: Path
    folder: Path
    nodes: int
    kinds: tuple[JobKind, ...]

    @contextmanager
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


@contextmanager
def prepared(folder: Path, nodes: int) -> Iterator[Ground]:
    """Brings up the local cluster, or uses the one that is up, which stays up.

    Raises ClusterError, also while a benchmark or another load run uses the cluster: each would distort the other.
    """
    folder.mkdir(parents=True, exist_ok=True)
    settings = settings_from()
    with exclusive(settings.load_lock, "a benchmark or another load run"):
        lifecycle.up(settings)
        nodes = cli.ensure_nodes(settings, nodes)
        client = Client(settings.kubeconfig)
        cli.install_crds(client)
        account.prepare(client, folder / "kubeconfig")
        try:
            yield Ground(client, folder / "kubeconfig", folder, nodes, read_kinds())
        finally:
            account.remove(client)


def until(wanted: Callable[[], bool], timeout: float, what: str) -> None:
    """Ask until ``wanted()``. Raises TimeoutError with ``what`` still exists."""
    deadline = time.monotonic() + timeout
    while not wanted():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} still exists after {timeout:.0f} s")
        time.sleep(_PAUSE)


def names_in(client: Client, collection: str) -> list[str]:
    """The names of the objects of a collection, without those of the cluster itself. Deeply nested ones count too."""
    path = f"{collection}?limit=500"
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    connection = client.connection()
    try:
        connection.request("GET", path, headers={"Accept": accept})
        answer = connection.getresponse()
        data = answer.read()
        if answer.status >= 400:
            raise Refused(answer.status, data[:500].decode(errors="replace"))
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
    paths = [
        *(kind.collection(namespace) for kind in stored(ground.kinds)),
        *(p.format(namespace) for p in collections),
    ]
    return [f"{path.rpartition('/')[2]}/{name}" for path in paths for name in names_in(ground.client, path)]


def delete_jobs(ground: Ground, namespace: str) -> None:
    """Delete all jobs of a namespace and release their finalizers; the garbage collector deletes what they own."""
    for kind in stored(ground.kinds):
        ground.client.raw("DELETE", kind.collection(namespace), {"propagationPolicy": "Background"})
    release_finalizers(ground, namespace)


def clear(ground: Ground, namespace: str, timeout: float) -> None:
    """Delete all jobs, and help the garbage collector with ``MANY``.

    Raises TimeoutError with the names of what is left.
    """
    delete_jobs(ground, namespace)
    deadline = time.monotonic() + timeout
    while remaining := left(ground, namespace):
        if time.monotonic() > deadline:
            shown = ", ".join(remaining[:10])
            raise TimeoutError(f"{len(remaining)} objects are left after {timeout:.0f} s: {shown}")
        plurals = {name.partition("/")[0] for name in remaining}
        for collection in MANY:
            if collection.rpartition("/")[2] in plurals:
                ground.client.raw("DELETE", collection.format(namespace), {"gracePeriodSeconds": 0})
        time.sleep(_PAUSE)
