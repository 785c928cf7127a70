"""Jobs of every kind in the queues of a real Kueue, on simulated nodes to which only the flavors bring them."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from devtools.lab.chaos.cli import kwok_program
from devtools.lab.chaos.shapes import EXIT
from devtools.testbed.base.settings import settings_from
from devtools.testbed.operator import OperatorProcess
from kubernetes import client

from support import builders
from support.kueue import QUEUE, Kueue, installed
from support.live_jobs import Cluster, Job, Resource, until
from support.small_nodes import placed_on, small_nodes

PRIORITY = "kueue.x-k8s.io/priority-class"
DLJOB = {
    "apiVersion": "dljob.operator/v1",
    "kind": "DLJob",
    "spec": {
        "framework": "pytorch",
        "replicas": {
            type_: {"count": count, "template": {"spec": {"containers": [{"name": "pytorch"}]}}}
            for type_, count in (("Master", 1), ("Worker", 2))
        },
    },
}
JOBS: dict[str, Mapping[str, Any]] = {
    "DLJob": DLJOB,
    "MXJob": builders.mxjob().v1().workers(2).resource(),
    "MXJob-list": builders.mxjob().workers(2).resource(),
    "Caffe2Job": builders.caffe2job(3),
    "TFJob-v1alpha1": builders.tfjob(master=1, worker=2),
    "TFJob": builders.tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=2),
    "PyTorchJob": builders.pytorchjob(master=1, worker=2),
    "PyTorchJob-groups": builders.grouped(
        builders.pytorchjob(master=1, worker=2), "Worker", first=(1, {"env": [{"name": "GROUP", "value": "1"}]})
    ),
    "XGBoostJob": builders.xgboostjob(worker=2),
    "PaddleJob": builders.paddlejob(worker=3),
    "JAXJob": builders.jaxjob(worker=3),
    "MPIJob": builders.mpijob(),
}
"""Three pods each, of one CPU."""


class Place:
    """A namespace with nodes of four CPUs, an operator and Kueue."""

    def __init__(self, here: Cluster, kueue: Kueue) -> None:
        self.here, self.kueue, self.namespace = here, kueue, here.namespace

    def queue(self, name: str, cpu: int = 3, **spec: Any) -> None:
        """A queue whose flavor selects the nodes and tolerates their taint."""
        where = placed_on(self.namespace)
        topology = spec.pop("topologyName", None)
        more = {"topologyName": topology} if topology else {}
        self.kueue.flavor(name, nodeLabels=where["nodeSelector"], tolerations=where["tolerations"], **more)
        self.kueue.cluster_queue(name, {name: {"cpu": str(cpu)}}, **spec)
        self.kueue.local_queue(self.namespace, name, name)

    def create(self, kind: str, name: str, queue: str, **labels: str) -> Job:
        return self.here.create(manifest_of(kind, name, queue, **labels))

    def exit(self, pods: list[Resource], code: int = 0) -> None:
        for pod in pods:
            name = pod["metadata"]["name"]
            change = {"metadata": {"annotations": {EXIT: str(code)}}}
            self.here.core.patch_namespaced_pod(name, self.namespace, change)

    def wait_running(self, job: Job, count: int = 3) -> list[Resource]:
        """The pods of a job once as many run and no other one is there."""

        def all_run(pods: list[Resource]) -> bool:
            return len(pods) == count and all(pod["status"].get("phase") == "Running" for pod in pods)

        self.here.wait_pods(job.uid, all_run, f"{count} pods of {job.name} run")
        return pods_of(self.here, job)

    def wait_used(self, queue: str, cpu: int) -> None:
        until(lambda: self.kueue.usage(queue).get("cpu", "0") == str(cpu))

    def workload(self, job: Job) -> Resource:
        found: list[Resource] = []

        def exists() -> bool:
            one = self.kueue.workload_of(self.namespace, job.uid)
            found[:] = [one] if one else []
            return bool(found)

        until(exists)
        return found[0]

    def wait_workload(self, job: Job, type_: str, status: str = "True", reason: str = "") -> Resource:
        return self.kueue.wait_workload(self.namespace, self.workload(job)["metadata"]["name"], type_, status, reason)


def manifest_of(kind: str, name: str, queue: str, **labels: str) -> dict[str, Any]:
    """A job of a ``kind`` of JOBS with the label of a queue."""
    manifest = copy.deepcopy(dict(JOBS[kind]))
    manifest["metadata"] = {"name": name, "labels": {QUEUE: queue, **labels}}
    for template in _templates(manifest["spec"]):
        _simulate(template)
    return manifest


def _templates(spec: Any) -> Iterator[dict[str, Any]]:
    """All pod templates below."""
    if isinstance(spec, list):
        for one in spec:
            yield from _templates(one)
    elif isinstance(spec, dict):
        if isinstance(spec.get("template"), dict):
            yield spec["template"]
        for one in spec.values():
            yield from _templates(one)


def _simulate(template: dict[str, Any]) -> None:
    template["spec"]["terminationGracePeriodSeconds"] = 1
    for container in template["spec"]["containers"]:
        container |= {"resources": {"requests": {"cpu": "1"}}, "image": "none"}


def pods_of(here: Cluster, job: Job) -> list[Resource]:
    return here.owned_pods(job.uid)


def all_terminate(pods: list[Resource]) -> bool:
    """Whether all of them are being deleted; also where there are none."""
    return all(pod["metadata"].get("deletionTimestamp") for pod in pods)


def says(status: Mapping[str, Any], text: str) -> bool:
    return text in str(status.get("reason"))


@contextmanager
def place(
    kubeconfig: Path, api: client.ApiClient, folder: Path, options: Sequence[str], **given: Any
) -> Iterator[Place]:
    """A place whose operator has these ``options``, with the keys ``given`` of Kueue's Configuration."""
    core: Any = client.CoreV1Api(api)
    name = f"test-{uuid.uuid4().hex[:10]}"
    with ExitStack() as stack:
        core.create_namespace({"metadata": {"name": name}})
        stack.callback(core.delete_namespace, name)
        here = Cluster(kubeconfig, name, own_operator=True)
        stack.enter_context(small_nodes(here.core, kwok_program(settings_from()), kubeconfig, name, folder))
        kueue = stack.enter_context(installed(settings_from(), kubeconfig, [name], folder, **given))
        arguments = ["--namespace", name, *options]
        operator = stack.enter_context(OperatorProcess(kubeconfig, folder / "operator.log", arguments))
        operator.wait_ready()
        yield Place(here, kueue)
