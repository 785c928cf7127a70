"""Kueue at work in some namespaces of the test cluster, and its queues."""

from __future__ import annotations

import base64
import fcntl
import subprocess
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml
from devtools.lab.chaos.webhook import CONTROL_PLANE, own_address
from devtools.testbed.base.settings import Settings
from devtools.testbed.cluster import kueue
from devtools.testbed.operator import free_port
from kubernetes import client, config

from support.certificates import write_rsa_certificate
from support.live_jobs import BEGUN, TIMEOUT, Resource, Timeout, until, watched

GROUP, VERSION = "kueue.x-k8s.io", "v1beta2"
QUEUE = f"{GROUP}/queue-name"
POD_GROUP = f"{GROUP}/pod-group-name"
POD_GROUP_COUNT = f"{GROUP}/pod-group-total-count"
MANAGED = f"{GROUP}/managed"
"""A label and a finalizer of the pods that Kueue manages."""
_CLUSTER_WIDE = (
    "clusterqueues",
    "cohorts",
    "resourceflavors",
    "topologies",
    "workloadpriorityclasses",
    "admissionchecks",
)
_NAMESPACED = ("workloads", "localqueues")
_READY_SECONDS = 60.0
_END_SECONDS = 30.0
_NOT_FOUND = 404


class Kueue:
    """The queues of a Kueue at work. It removes all objects of these kinds at its end."""

    def __init__(self, api: client.ApiClient, namespaces: Sequence[str], log: Path) -> None:
        self.custom: Any = client.CustomObjectsApi(api)
        self.namespaces = tuple(namespaces)
        self.log = log

    # --- objects of the administrator

    def flavor(self, name: str, **spec: Any) -> None:
        """A ResourceFlavor: ``nodeLabels``, ``nodeTaints``, ``tolerations``, ``topologyName``."""
        self._create("ResourceFlavor", "resourceflavors", name, spec)

    def topology(self, name: str, *levels: str) -> None:
        """A Topology; ``levels`` are labels of nodes, the widest first."""
        self._create("Topology", "topologies", name, {"levels": [{"nodeLabel": level} for level in levels]})

    def priority(self, name: str, value: int) -> None:
        """A WorkloadPriorityClass."""
        body = {**_head("WorkloadPriorityClass", name), "value": value}
        self.custom.create_cluster_custom_object(GROUP, VERSION, "workloadpriorityclasses", body)

    def cluster_queue(self, name: str, quotas: Mapping[str, Mapping[str, str]], **spec: Any) -> None:
        """A ClusterQueue for all namespaces; ``quotas`` is by flavor and resource, and each flavor has the same ones."""
        (covered, *_) = quotas.values()
        flavors = [
            {"name": flavor, "resources": [{"name": one, "nominalQuota": size} for one, size in sizes.items()]}
            for flavor, sizes in quotas.items()
        ]
        groups = [{"coveredResources": list(covered), "flavors": flavors}]
        self._create("ClusterQueue", "clusterqueues", name, {"namespaceSelector": {}, "resourceGroups": groups, **spec})

    def local_queue(self, namespace: str, name: str, cluster_queue: str) -> None:
        body = {**_head("LocalQueue", name), "spec": {"clusterQueue": cluster_queue}}
        self.custom.create_namespaced_custom_object(GROUP, VERSION, namespace, "localqueues", body)

    def queue(self, namespace: str, name: str, **quota: str) -> None:
        """A flavor, a ClusterQueue and a LocalQueue, all of this name, with ``quota`` by resource (``cpu="2"``)."""
        self.flavor(name)
        self.cluster_queue(name, {name: quota})
        self.local_queue(namespace, name, name)
        self.wait_object("localqueues", namespace, name, lambda found: condition(found, "Active")["status"] == "True")

    def _create(self, kind: str, plural: str, name: str, spec: Mapping[str, Any]) -> None:
        body = {**_head(kind, name), "spec": dict(spec)}
        self.custom.create_cluster_custom_object(GROUP, VERSION, plural, body)

    # --- what it does

    def workloads(self, namespace: str) -> list[Resource]:
        return list(self.custom.list_namespaced_custom_object(GROUP, VERSION, namespace, "workloads")["items"])

    def workload_of(self, namespace: str, uid: str) -> Resource | None:
        """The Workload that the object with this uid owns, None if there is none."""
        for found in self.workloads(namespace):
            if uid in [owner["uid"] for owner in found["metadata"].get("ownerReferences", ())]:
                return found
        return None

    def usage(self, cluster_queue: str) -> dict[str, str]:
        """By resource, the quota that is reserved in a ClusterQueue of one flavor."""
        found = self.custom.get_cluster_custom_object(GROUP, VERSION, "clusterqueues", cluster_queue)
        return {
            one["name"]: str(one["total"])
            for flavor in found.get("status", {}).get("flavorsReservation", ())
            for one in flavor["resources"]
        }

    def wait_workload(
        self, namespace: str, name: str, type_: str, status: str = "True", reason: str = "", timeout: int = TIMEOUT
    ) -> Resource:
        """Wait until a condition of the Workload has this status (and reason); returns the Workload."""

        def reached(found: Resource) -> bool:
            seen = condition(found, type_)
            return seen["status"] == status and reason in ("", seen["reason"])

        return self.wait_object("workloads", namespace, name, reached, f"{type_} is {status} {reason}", timeout)

    def wait_object(
        self, plural: str, namespace: str, name: str, wanted: Callable[[Resource], bool], what: str = "",
        timeout: int = TIMEOUT,
    ) -> Resource:  # fmt: skip
        """Wait until ``wanted`` is true for an object of a namespace; returns it."""
        seen: Resource = {}
        where = (GROUP, VERSION, namespace, plural)
        listed = self.custom.list_namespaced_custom_object
        for event in watched(listed, *where, timeout=timeout, field_selector=f"metadata.name={name}"):
            for found in event["raw_object"]["items"] if event["type"] == BEGUN else [event["raw_object"]]:
                seen = found
                if event["type"] != "DELETED" and wanted(found):
                    return dict(found)
        raise Timeout(f"{what}: not after {timeout} s: {yaml.safe_dump(seen.get('status'))}\n{tail(self.log)}")


def _head(kind: str, name: str) -> Resource:
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": {"name": name}}


def condition(found: Mapping[str, Any], type_: str) -> Resource:
    """The condition of this type, with empty fields if there is none."""
    for one in found.get("status", {}).get("conditions", ()):
        if one["type"] == type_:
            return dict(one)
    return {"type": type_, "status": "", "reason": "", "message": ""}


def tail(log: Path, lines: int = 20) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


@contextmanager
def installed(
    settings: Settings, kubeconfig: Path, namespaces: Sequence[str], folder: Path, **given: Any
) -> Iterator[Kueue]:
    """Kueue for these namespaces, with the keys ``given`` of its Configuration. Its files and its log are in ``folder``.

    On exit it, its CRDs and all their objects are gone. There is one at a time in a cluster: another one waits.
    """
    program, manifests = kueue.program(settings), kueue.components(settings)
    with (settings.state_dir / "kueue.lock").open("w") as lock, config.new_client_from_config(str(kubeconfig)) as api:
        fcntl.flock(lock, fcntl.LOCK_EX)
        setup = _Installation(api, kubeconfig, namespaces, folder, manifests)
        setup.remove()
        try:
            setup.create()
            with setup.process(program, given):
                setup.wait_ready()
                try:
                    yield Kueue(api, namespaces, setup.log)
                finally:
                    setup.empty()
        finally:
            setup.remove()


class _Installation:
    def __init__(
        self, api: client.ApiClient, kubeconfig: Path, namespaces: Sequence[str], folder: Path, manifests: Path
    ) -> None:
        # their types know neither manifests nor that the fields of an answer are there
        self.core: Any = client.CoreV1Api(api)
        self.custom: Any = client.CustomObjectsApi(api)
        self.crds: Any = client.ApiextensionsV1Api(api)
        self.hooks = client.AdmissionregistrationV1Api(api)
        self.kubeconfig, self.namespaces, self.folder = kubeconfig, tuple(namespaces), folder
        self.home = f"kueue-{uuid.uuid4().hex[:6]}"
        self.log = folder / "kueue.log"
        host = _address_for_the_api_server(self.core)
        port, self.health = free_port(host), free_port()
        names = [*kueue.CERTIFICATE_NAMES, f"DNS:{kueue.SERVICE}.{self.home}.svc", f"IP:{host}"]
        self.files = write_rsa_certificate(folder, names, kueue.CERTIFICATE_DAYS)
        self.endpoint = kueue.Endpoint(host, port, self.files[0].read_text())
        self.definitions = kueue.definitions(manifests, self.endpoint)
        self.configurations = kueue.webhooks(manifests, self.endpoint, namespaces)

    # --- installation

    def create(self) -> None:
        self.core.create_namespace({"metadata": {"name": self.home}})
        certificate, key = (base64.b64encode(file.read_bytes()).decode() for file in self.files)
        data = {"ca.crt": certificate, "ca.key": key, "tls.crt": certificate, "tls.key": key}
        self.core.create_namespaced_secret(self.home, {"metadata": {"name": kueue.SECRET}, "data": data})
        for definition in self.definitions:
            self.crds.create_custom_resource_definition(definition)
        for definition in self.definitions:
            until(lambda name=definition["metadata"]["name"]: self._served(name))
        for configuration in self.configurations:
            _of_kind(self.hooks, "create", configuration["kind"])(configuration)

    def _served(self, name: str) -> bool:
        found = self.crds.read_custom_resource_definition(name).status
        return any(one.type == "Established" and one.status == "True" for one in found.conditions or ())

    @contextmanager
    def process(self, program: Path, given: Mapping[str, Any]) -> Iterator[None]:
        written = kueue.configuration(self.home, self.namespaces, self.endpoint, self.folder, self.health, given)
        file = self.folder / "kueue.yaml"
        file.write_text(yaml.safe_dump(written))
        command = [str(program), "--config", str(file), "--kubeconfig", str(self.kubeconfig), "--zap-log-level", "2"]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        try:
            yield
        finally:
            self._process.terminate()
            try:
                self._process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def wait_ready(self) -> None:
        """Wait until the API server reaches the webhooks."""
        until(self._is_ready, timeout=_READY_SECONDS)
        until(self._answers, timeout=_READY_SECONDS)

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, tail(self.log)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.health}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def _answers(self) -> bool:
        """Whether a ClusterQueue, whose webhook sets a field, gets it in a dry run."""
        body = {**_head("ClusterQueue", "probe"), "spec": {}}
        try:
            made = self.custom.create_cluster_custom_object(GROUP, VERSION, "clusterqueues", body, dry_run="All")
        except client.ApiException as error:
            assert error.status in (404, 500), error
            return False
        return bool(made["metadata"].get("finalizers"))

    # --- removal

    def empty(self) -> None:
        """Delete the objects and the pods that Kueue manages, as long as it removes its finalizers."""
        self._delete_all()
        with suppress(AssertionError):  # `remove` does the rest
            until(lambda: not any(self._left()), timeout=_END_SECONDS)

    def _delete_all(self) -> None:
        for namespace in self.namespaces:
            with _ignored(_NOT_FOUND):
                self.core.delete_collection_namespaced_pod(namespace, label_selector=f"{MANAGED}=true")
            for plural in _NAMESPACED:
                with _ignored(_NOT_FOUND):
                    self.custom.delete_collection_namespaced_custom_object(GROUP, VERSION, namespace, plural)
        for plural in _CLUSTER_WIDE:
            with _ignored(_NOT_FOUND):
                self.custom.delete_collection_cluster_custom_object(GROUP, VERSION, plural)

    def _left(self) -> Iterator[tuple[str, Resource]]:
        for plural in (*_NAMESPACED, *_CLUSTER_WIDE):
            with _ignored(_NOT_FOUND):
                for found in self.custom.list_cluster_custom_object(GROUP, VERSION, plural)["items"]:
                    yield plural, found

    def remove(self) -> None:
        """Remove all of Kueue from the cluster, whether it runs or not."""
        for configuration in self.configurations:
            with _ignored(_NOT_FOUND):
                _of_kind(self.hooks, "delete", configuration["kind"])(configuration["metadata"]["name"])
        self._release_pods()
        present = [
            definition["metadata"]["name"]
            for definition in self.definitions
            if self._exists(definition["metadata"]["name"])
        ]
        if present:
            self._stop_converting(present)
            self._delete_all()
            for plural, found in self._left():
                self._release(plural, found)
            for name in present:
                self.crds.delete_custom_resource_definition(name)
            until(lambda: not any(map(self._exists, present)))
        with _ignored(_NOT_FOUND):
            self.core.delete_namespace(self.home)

    def _exists(self, name: str) -> bool:
        try:
            self.crds.read_custom_resource_definition(name)
        except client.ApiException as error:
            assert error.status == _NOT_FOUND, error
            return False
        return True

    def _stop_converting(self, names: Sequence[str]) -> None:
        """Nobody answers any more, and the objects are of the one version that is stored."""
        for name in names:
            none = {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
            self.crds.patch_custom_resource_definition(name, none)

    def _release_pods(self) -> None:
        """Take the finalizer off pods that no Kueue will release."""
        for pod in self.core.list_pod_for_all_namespaces(label_selector=f"{MANAGED}=true").items:
            if MANAGED in (pod.metadata.finalizers or ()):
                change = [{"op": "remove", "path": "/metadata/finalizers"}]
                with _ignored(_NOT_FOUND):
                    self.core.patch_namespaced_pod(pod.metadata.name, pod.metadata.namespace, change)

    def _release(self, plural: str, found: Resource) -> None:
        name, namespace = found["metadata"]["name"], found["metadata"].get("namespace")
        change = {"metadata": {"finalizers": None}}
        with _ignored(_NOT_FOUND):
            if namespace:
                self.custom.patch_namespaced_custom_object(GROUP, VERSION, namespace, plural, name, change)
            else:
                self.custom.patch_cluster_custom_object(GROUP, VERSION, plural, name, change)


def _of_kind(hooks: client.AdmissionregistrationV1Api, verb: str, kind: str) -> Callable[[Any], Any]:
    kinds = {
        "MutatingWebhookConfiguration": "mutating_webhook_configuration",
        "ValidatingWebhookConfiguration": "validating_webhook_configuration",
    }
    found: Callable[[Any], Any] = getattr(hooks, f"{verb}_{kinds[kind]}")
    return found


@contextmanager
def _ignored(status: int) -> Iterator[None]:
    try:
        yield
    except client.ApiException as error:
        if error.status != status:
            raise


def _address_for_the_api_server(core: Any) -> str:
    (node, *_) = core.list_node(label_selector=CONTROL_PLANE).items
    return own_address(next(one.address for one in node.status.addresses if one.type == "InternalIP"))
