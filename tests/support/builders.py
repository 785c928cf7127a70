"""Builders for manifests of jobs and pods: ``mxjob("digits").v1().servers(2).workers(2).resource()``."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import yaml
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import loader
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import (
    build_cluster_spec,
    for_replica,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import Owner
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.caffe2 import (
    caffe2_environment,
    caffe2_validation,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.mpi import hooks as mpi_hooks
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.mxnet import mxnet_environment
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.paddle import paddle_environment
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.pytorch import hooks as pytorch_hooks
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.tensorflow import (
    hooks as tensorflow_hooks,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.xgboost import xgboost_environment
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import host_names
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.pods import PodContext, build_pod
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.services import build_all
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.spec_hash import spec_hashes
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.observed_state import build_observed_state
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import PodToCreate

Resource = dict[str, Any]

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
UID = "e800b1ed-9c6c-11e8-962f-704d7b2c0a63"
OWN_OPERATOR = {"dljob-test/operator": "own"}
"""Labels of a job that its test reconciles by itself: the operator that many tests share ignores such jobs."""


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def stamp(seconds: float = 0) -> str:
    return clock.stamp(at(seconds))


def declaration(name: str) -> dict[str, Any]:
    """The framework declaration of that role, without its filters."""
    declared = yaml.safe_load((ROOT / f"roles/{name}/vars/main.yml").read_text())[f"{name}_framework"]
    return {key: value for key, value in declared.items() if key != "hooks"}


MXNET: Framework = loader.framework(declaration("mxnet"), {"environment": mxnet_environment})
CAFFE2: Framework = loader.framework(
    declaration("caffe2"), {"environment": caffe2_environment, "validate": caffe2_validation}
)


def declared_entirely(name: str) -> Framework:
    """The framework of a role whose declaration has its environment too, and no other hook."""
    declared = yaml.safe_load((ROOT / f"roles/{name}/vars/main.yml").read_text())[f"{name}_framework"]
    return loader.framework(declared)


def role_file(role: str, name: str) -> str:
    """The text of a file of a role."""
    return (ROOT / "roles" / role / "files" / name).read_text(encoding="utf-8")


def hooks_of(module: ModuleType) -> dict[str, Callable[..., Any]]:
    """The hooks that a framework's module has, as its filters call them."""
    names = {"environment": "environment", "validate": "validate", "pod": "pod_defaults", "objects": "objects"}
    return {hook: getattr(module, name) for hook, name in names.items() if hasattr(module, name)}


TENSORFLOW: Framework = loader.framework(
    declaration("tensorflow"), hooks_of(tensorflow_hooks), read=lambda name: role_file("tensorflow", name)
)
PYTORCH: Framework = loader.framework(declaration("pytorch"), hooks_of(pytorch_hooks))
PADDLE: Framework = loader.framework(declaration("paddle"), {"environment": paddle_environment})
JAX: Framework = declared_entirely("jax")
MPI: Framework = loader.framework(declaration("mpi"), hooks_of(mpi_hooks))
XGBOOST: Framework = loader.framework(declaration("xgboost"), {"environment": xgboost_environment})

ECHO_DECLARATION: Mapping[str, Any] = {
    "name": "echo",
    "kinds": ["EchoJob"],
    "container": "echo",
    "replica_types": {"Leader": {"minimum": 1, "maximum": 1}, "Follower": {}},
    "hooks": {"environment": {"ECHO_RANK": "{rank}", "ECHO_LEADER": "{rank0_host}:{rank0_port}"}},
    "flavors": [
        {
            "groups": ["example.com"],
            "replicas_layout": "map",
            "replicas_fields": ["replicaSpecs"],
            "names": "job",
            "status": "v1",
        }
    ],
}
"""The smallest framework: it has no optional keys."""


def echo_framework(**changes: Any) -> Framework:
    return loader.framework({**ECHO_DECLARATION, **changes})


def echo_framework_of_flavor(**changes: Any) -> Framework:
    flavor = {**ECHO_DECLARATION["flavors"][0], **changes}
    return echo_framework(flavors=[flavor])


class MXJob:
    """An MXJob with one scheduler; each method adds to it and returns it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._flavor = "v1"
        self._counts: dict[str, int] = {"Scheduler": 1}
        self._entries: dict[str, dict[str, Any]] = {}
        self._pods: dict[str, dict[str, Any]] = {}
        self._containers: dict[str, dict[str, Any]] = {}
        self._metadata: dict[str, Any] = {}
        self._options: dict[str, Any] = {}
        self._status: dict[str, Any] | None = None
        self._restart_policy: dict[str, str] = {}
        self._uid = UID

    # --- flavors

    def v1(self) -> Self:
        """kubeflow.org/v1: a map of replica types."""
        self._flavor = "v1"
        return self

    def v1alpha1(self) -> Self:
        """kubeflow.org/v1alpha1: a list."""
        self._flavor = "v1alpha1"
        return self

    def fioravanzo(self) -> Self:
        self._flavor = "fioravanzo"
        return self

    def mpba(self) -> Self:
        """mpba.fbk.eu/v1: the spec is the list."""
        self._flavor = "mpba"
        return self

    def flavor(self, name: str) -> Self:
        self._flavor = name
        return self

    # --- replicas

    def replicas(self, type_: str, count: int) -> Self:
        self._counts[type_] = count
        return self

    def scheduler(self, count: int) -> Self:
        return self.replicas("Scheduler", count)

    def servers(self, count: int) -> Self:
        return self.replicas("Server", count)

    def workers(self, count: int) -> Self:
        return self.replicas("Worker", count)

    def without(self, type_: str) -> Self:
        self._counts.pop(type_, None)
        return self

    def entry(self, type_: str, **fields: Any) -> Self:
        """Fields of a replica spec."""
        self._entries.setdefault(type_, {}).update(fields)
        return self

    def pod(self, type_: str, **fields: Any) -> Self:
        """Fields of a pod spec."""
        self._pods.setdefault(type_, {}).update(fields)
        return self

    def container(self, type_: str, **fields: Any) -> Self:
        """Fields of the container ``mxnet``."""
        self._containers.setdefault(type_, {}).update(fields)
        return self

    def template_metadata(self, type_: str, **fields: Any) -> Self:
        self._metadata.setdefault(type_, {}).update(fields)
        return self

    def restart(self, policy: str, *types: str) -> Self:
        """The restart policy of the types (of all types by default), where the flavor has it."""
        for type_ in types or self._counts:
            self._restart_policy[type_] = policy
        return self

    # --- the job as a whole

    def option(self, **fields: Any) -> Self:
        self._options.update(fields)
        return self

    def run_policy(self, **fields: Any) -> Self:
        self._options.setdefault("runPolicy", {}).update(fields)
        return self

    def chief(self, type_: str, index: int = 0) -> Self:
        return self.option(terminationPolicy={"chief": {"replicaName": type_, "replicaIndex": index}})

    def status(self, **fields: Any) -> Self:
        self._status = fields
        return self

    def uid(self, uid: str) -> Self:
        self._uid = uid
        return self

    def resource(self) -> Resource:
        api_version, type_field = {
            "v1": ("kubeflow.org/v1", ""),
            "v1alpha1": ("kubeflow.org/v1alpha1", "mxReplicaType"),
            "fioravanzo": ("fioravanzo.org/v1alpha1", "mxReplicaType"),
            "mpba": ("mpba.fbk.eu/v1", "replicaType"),
        }[self._flavor]
        entries = {type_: self._entry(type_, count) for type_, count in self._counts.items()}
        spec: Any
        if self._flavor == "v1":
            spec = {"mxReplicaSpecs": entries, **self._options}
        else:
            listed = [{type_field: type_.upper(), **entry} for type_, entry in entries.items()]
            spec = listed if self._flavor == "mpba" else {"replicaSpecs": listed, **self._options}
        made: Resource = {
            "apiVersion": api_version,
            "kind": "MXJob",
            "metadata": {
                "name": self._name,
                "namespace": "default",
                "uid": self._uid,
                "generation": 1,
                "resourceVersion": "1",
                "creationTimestamp": stamp(),
            },
            "spec": spec,
        }
        if self._status is not None:
            made["status"] = self._status
        return copy.deepcopy(made)

    def _entry(self, type_: str, count: int) -> dict[str, Any]:
        container = {"name": "mxnet", "image": "train:1", **self._containers.get(type_, {})}
        template: dict[str, Any] = {"spec": {"containers": [container], **self._pods.get(type_, {})}}
        if type_ in self._metadata:
            template["metadata"] = self._metadata[type_]
        entry: dict[str, Any] = {"replicas": count, "template": template}
        policy = self._restart_policy.get(type_)
        if policy and self._flavor == "v1":
            entry["restartPolicy"] = policy
        elif policy:
            template["spec"]["restartPolicy"] = policy
        return {**entry, **self._entries.get(type_, {})}

    def job(self) -> DLJob:
        return parse_job(self.resource(), MXNET)


def mxjob(name: str = "digits") -> MXJob:
    return MXJob(name)


def echojob(followers: int = 2, **spec: Any) -> Resource:
    """An EchoJob of one leader."""
    template = {"spec": {"containers": [{"name": "echo", "image": "echo:1"}]}}
    return {
        "apiVersion": "example.com/v1",
        "kind": "EchoJob",
        "metadata": {"name": "hello", "namespace": "default", "uid": UID, "generation": 1},
        "spec": {
            "replicaSpecs": {
                "Leader": {"template": copy.deepcopy(template)},
                "Follower": {"replicas": followers, "template": copy.deepcopy(template)},
            },
            **spec,
        },
    }


def tf_template(**container: Any) -> Resource:
    return {"spec": {"containers": [{"name": "tensorflow", "image": "train:1", **container}]}}


def tfjob(api_version: str = "tensorflow.org/v1alpha1", field: str = "replicaSpecs", **counts: int) -> Resource:
    """``tfjob(master=1, ps=2)``: in v1alpha1 the parameter servers have no template, in v1 all types have one."""
    entries: Any
    if field == "tfReplicaSpecs":
        names = {"ps": "PS"}
        entries = {names.get(t, t.title()): {"replicas": n, "template": tf_template()} for t, n in counts.items()}
    else:
        entries = [
            {"tfReplicaType": t.upper(), "replicas": n, **({} if t == "ps" else {"template": tf_template()})}
            for t, n in counts.items()
        ]
    return {
        "apiVersion": api_version,
        "kind": "TfJob" if api_version.startswith("tensorflow") else "TFJob",
        "metadata": {"name": "example-job", "namespace": "default", "uid": UID, "generation": 1},
        "spec": {field: entries, **({} if field == "tfReplicaSpecs" else {"RuntimeId": "76no"})},
    }


def caffe2job(workers: int | None = 2, pod: Mapping[str, Any] | None = None, **spec: Any) -> Resource:
    """A Caffe2Job with a Redis server for the rendezvous, unless ``spec`` sets another backend."""
    replicas: Resource = {"template": {"spec": {"containers": [{"name": "caffe2", "image": "c2:1"}], **(pod or {})}}}
    if workers is not None:
        replicas["replicas"] = workers
    backend = {"backendType": "redis", "redisHost": "redis-service", "redisPort": 6379}
    return {
        "apiVersion": "kubeflow.org/v1alpha1",
        "kind": "Caffe2Job",
        "metadata": {"name": "example-job", "namespace": "default", "uid": UID, "generation": 1},
        "spec": copy.deepcopy({"backendSpecs": backend, "replicaSpecs": replicas, **spec}),
    }


def job_of_v1(kind: str, field: str, container: str, counts: Mapping[str, int], spec: Resource) -> Resource:
    """A job of kubeflow.org/v1: the map of replica specs, without types that have no replicas."""
    template = {"spec": {"containers": [{"name": container, "image": "train:1"}]}}
    replicas = {t: {"replicas": n, "template": copy.deepcopy(template)} for t, n in counts.items() if n}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {"name": "example-job", "namespace": "default", "uid": UID, "generation": 1},
        "spec": {field: replicas, **spec},
    }


def pytorchjob(master: int = 0, worker: int = 0, **spec: Any) -> Resource:
    counts = {"Master": master, "Worker": worker}
    return job_of_v1("PyTorchJob", "pytorchReplicaSpecs", "pytorch", counts, spec)


def jaxjob(worker: int = 1, **spec: Any) -> Resource:
    return job_of_v1("JAXJob", "jaxReplicaSpecs", "jax", {"Worker": worker}, spec)


def mpijob(worker: int | None = 2, name: str = "pi", **spec: Any) -> Resource:
    """An MPIJob of v2beta1; without an entry for workers where ``worker`` is ``None``."""
    launcher = {"spec": {"containers": [{"name": "launcher", "image": "mpi:1", "command": ["mpirun", "train"]}]}}
    replicas: Resource = {"Launcher": {"template": launcher}}
    if worker is not None:
        template = {"spec": {"containers": [{"name": "worker", "image": "mpi:1"}]}}
        replicas["Worker"] = {"replicas": worker, "template": template}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name, "namespace": "default", "uid": UID, "generation": 1},
        "spec": {"mpiReplicaSpecs": copy.deepcopy(replicas), **spec},
    }


def mpijob_v1(worker: int | None = 2, name: str = "pi", **spec: Any) -> Resource:
    """An MPIJob of v1, as its user writes it."""
    return {**mpijob(worker, name, **spec), "apiVersion": "kubeflow.org/v1"}


OF_OTHERS: dict[str, Resource] = {
    "without an owner": {},
    "with the job's label": {"labels": {"dljob.operator/job-uid": UID}},
    "another's": {
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "x", "controller": True}],
    },
    "not controlled by the job": {
        "ownerReferences": [{"apiVersion": "v1", "kind": "MPIJob", "name": "pi", "uid": UID}],
    },
}
"""Metadata of objects that do not belong to the job of ``mpijob()`` with UID."""


def paddlejob(master: int = 0, worker: int = 0, **spec: Any) -> Resource:
    return job_of_v1("PaddleJob", "paddleReplicaSpecs", "paddle", {"Master": master, "Worker": worker}, spec)


def xgboostjob(master: int = 1, worker: int = 0, **spec: Any) -> Resource:
    return job_of_v1("XGBoostJob", "xgbReplicaSpecs", "xgboost", {"Master": master, "Worker": worker}, spec)


def grouped(resource: Resource, type_: str, **groups: tuple[int, Mapping[str, Any]]) -> Resource:
    """``resource`` with groups of replicas in the replica spec of ``type_``: the number of each, and the fields by which
    the first container of its template differs from that of the replica spec."""
    (entries,) = (entries for field, entries in resource["spec"].items() if field.lower().endswith("replicaspecs"))
    entry = entries[type_]
    made = []
    for name, (count, changes) in groups.items():
        template = copy.deepcopy(entry["template"])
        template["spec"]["containers"][0].update(copy.deepcopy(dict(changes)))
        made.append({"name": name, "replicas": count, "template": template})
    entry["groups"] = made
    return resource


class Pod:
    """A pod of the operator, with a status that the methods set."""

    def __init__(self, manifest: Mapping[str, Any], container: str = "mxnet") -> None:
        self._made: Resource = copy.deepcopy(dict(manifest))
        self._container = container
        metadata = self._made["metadata"]
        metadata.setdefault("uid", f"uid-of-{metadata['name']}")
        metadata.setdefault("creationTimestamp", stamp())
        self._made["status"] = {"phase": "Pending"}

    def running(self) -> Self:
        return self._in("Running", {"running": {"startedAt": stamp()}})

    def succeeded(self, seconds: float = 0) -> Self:
        return self._in("Succeeded", _terminated(0, "Completed", "", seconds))

    def failed(self, code: int = 1, reason: str = "Error", message: str = "", seconds: float = 0) -> Self:
        """The phase is Failed."""
        return self._in("Failed", _terminated(code, reason, message, seconds))

    def exited(self, code: int, reason: str = "Error", seconds: float = 0) -> Self:
        """The framework's container has exited, another container of the pod still runs."""
        self._in("Running", _terminated(code, reason, "", seconds))
        self._made["status"]["containerStatuses"].append(
            {"name": "sidecar", "restartCount": 0, "state": {"running": {"startedAt": stamp()}}}
        )
        return self

    def restarted(self, code: int, times: int = 1, reason: str = "Error", seconds: float = 0) -> Self:
        """The kubelet has restarted the container in place, and it runs."""
        self.running()
        status = self._made["status"]["containerStatuses"][0]
        status |= {"restartCount": times, "lastState": _terminated(code, reason, "", seconds)}
        return self

    def waiting(self, reason: str, message: str = "") -> Self:
        return self._in("Pending", {"waiting": {"reason": reason, "message": message}})

    def refused_by_node(self, reason: str = "OutOfcpu", message: str = "Node didn't have enough resource") -> Self:
        """Failed before any container ran."""
        self._made["status"] = {"phase": "Failed", "reason": reason, "message": message}
        return self

    def disrupted(self) -> Self:
        self._made["status"].setdefault("conditions", []).append({"type": "DisruptionTarget", "status": "True"})
        return self

    def deleting(self) -> Self:
        self._made["metadata"] |= {"deletionTimestamp": stamp(30), "deletionGracePeriodSeconds": 30}
        return self

    def of_another_spec(self) -> Self:
        self._made["metadata"]["annotations"]["dljob.operator/spec-hash"] = "0" * 16
        return self

    def created(self, seconds: float) -> Self:
        self._made["metadata"]["creationTimestamp"] = stamp(seconds)
        return self

    def change(self, function: Callable[[Resource], object]) -> Self:
        function(self._made)
        return self

    def resource(self) -> Resource:
        return copy.deepcopy(self._made)

    def view(self) -> PodState:
        owner = self._made["metadata"]["ownerReferences"][0]["uid"]
        return build_observed_state(Owner("default", owner), self._container, [self._made], []).pods[0]

    def _in(self, phase: str, state: Mapping[str, Any]) -> Self:
        status = {"name": self._container, "restartCount": 0, "state": dict(state)}
        self._made["status"] = {"phase": phase, "containerStatuses": [status]}
        return self


def _terminated(code: int, reason: str, message: str, seconds: float) -> dict[str, Any]:
    ended = {"exitCode": code, "reason": reason, "finishedAt": stamp(seconds)}
    return {"terminated": {**ended, "message": message} if message else ended}


def kept(job: Resource) -> Any:
    """The spec of ``job`` as the API server keeps it: kinds that it stores in v1 get an empty runPolicy."""
    stored_in_v1 = job["apiVersion"].startswith("kubeflow.org/") and job["kind"] != "Caffe2Job"
    return {"runPolicy": {}, **job["spec"]} if stored_in_v1 else job["spec"]


def manifest_of(job: DLJob, type_: str, index: int = 0, attempt: int = 0, framework: Framework = MXNET) -> Resource:
    """The Pod manifest that the operator would create."""
    canonical = framework.type_named(type_)
    group = job.group(canonical.name) if canonical else None
    assert group is not None, type_
    return dict(build_pod(job, PodToCreate(group, index, attempt), pod_context(job, framework)))


def pod_context(job: DLJob, framework: Framework = MXNET) -> PodContext:
    """What all pods of the job have in common."""
    cluster = build_cluster_spec(job, framework)
    replaceable = host_names.replaceable(job, framework, cluster)
    return PodContext(framework, cluster, spec_hashes(job), replaceable_names=replaceable)


def pod_of(job: DLJob, type_: str, index: int = 0, attempt: int = 0, framework: Framework = MXNET) -> Pod:
    return Pod(manifest_of(job, type_, index, attempt, framework), framework.container)


def pods_of(job: DLJob, framework: Framework = MXNET) -> list[Pod]:
    """One pod, pending, for every replica."""
    return [pod_of(job, group.type, index, framework=framework) for group, index in job.tasks()]


def observed(job: DLJob, pods: Iterable[Pod] = (), services: bool = True) -> Observed:
    """The observed state with these pods and all Services of the job."""
    made = [
        {**s, "metadata": {**s["metadata"], "uid": f"uid-of-{s['metadata']['name']}"}} for s in build_all(job, MXNET)
    ]
    return build_observed_state(
        Owner("default", job.uid), MXNET.container, [p.resource() for p in pods], made if services else []
    )


def environment_of(pod: Mapping[str, Any], container: str = "mxnet") -> dict[str, str]:
    """The variables of a pod's container. Of duplicates the last one takes precedence, like in the kubelet."""
    found = next(c for c in pod["spec"]["containers"] if c["name"] == container)
    return {e["name"]: e.get("value", "") for e in found.get("env", ())}


def seen_from(job: DLJob, type_: str, index: int = 0, framework: Framework = MXNET) -> Mapping[str, Any]:
    """The cluster spec for a replica, the input of environment filters."""
    return for_replica(build_cluster_spec(job, framework), type_, index)
