"""Small valid jobs of every kind, whose pods are placed on simulated nodes. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from devtools.testbed.cluster.kwok import node_name

Resource = dict[str, Any]

IMAGE = "example.com/none:1"
"""Nothing pulls it: kwok only writes the status of its pods."""


@dataclass(frozen=True)
class Shape:
    """How a small job of a kind looks. ``types`` are its replica types with their counts in order, ``success`` the one
    whose replica 0 decides the outcome."""

    container: str
    field: str
    """The field of the replicas in the spec; "" where the spec itself is the list."""
    types: tuple[tuple[str, int], ...]
    success: str
    type_field: str = ""
    """The field with the replica type in a list's entry; "" where the replicas are a map, or a single entry."""
    single: bool = False
    """Whether the replicas are a single entry without a type."""
    count_field: str = "replicas"
    """The field of an entry with the number of replicas."""
    extra: tuple[tuple[str, Any], ...] = ()
    """Further fields of the spec."""
    has_batch_job: bool = False
    """Whether a batch Job runs its success target; the kind then has no restart policy of the operator's own."""

    @property
    def pods(self) -> int:
        return sum(count for _, count in self.types)

    @property
    def retry_policy(self) -> str:
        """The restart policy with which a pod that failed with a retryable exit code gets a successor: ``ExitCode`` in
        v1, where it is the operator's own; ``Never`` in a list's template, where the kubelet restarts nothing; "" where
        a failure ends the job."""
        if self.single or self.has_batch_job:
            return ""
        return "Never" if self.type_field else "ExitCode"


_MX_LIST = Shape("mxnet", "replicaSpecs", (("SCHEDULER", 1), ("SERVER", 1), ("WORKER", 1)), "SCHEDULER")
SHAPES: Mapping[tuple[str, str], Shape] = {
    ("kubeflow.org/v1alpha1", "Caffe2Job"): Shape(
        "caffe2", "replicaSpecs", (("", 1),), "worker", single=True, extra=(("backendSpecs", {"backendType": "none"}),)
    ),
    ("dljob.operator/v1", "DLJob"): Shape(
        "jax", "replicas", (("Worker", 2),), "Worker", count_field="count", extra=(("framework", "jax"),)
    ),
    ("fioravanzo.org/v1alpha1", "MXJob"): Shape(
        "mxnet", "replicaSpecs", _MX_LIST.types, "SCHEDULER", "mxReplicaType", extra=(("jobMode", "dist"),)
    ),
    ("kubeflow.org/v1", "JAXJob"): Shape("jax", "jaxReplicaSpecs", (("Worker", 2),), "Worker"),
    ("kubeflow.org/v1", "MPIJob"): Shape("mpi", "mpiReplicaSpecs", (("Launcher", 1), ("Worker", 1)), "Launcher"),
    ("kubeflow.org/v2beta1", "MPIJob"): Shape(
        "mpi", "mpiReplicaSpecs", (("Launcher", 1), ("Worker", 1)), "Launcher", has_batch_job=True
    ),
    ("kubeflow.org/v1", "MXJob"): Shape(
        "mxnet", "mxReplicaSpecs", (("Scheduler", 1), ("Server", 1), ("Worker", 1)), "Scheduler",
        extra=(("jobMode", "MXTrain"),),
    ),
    ("kubeflow.org/v1alpha1", "MXJob"): Shape(
        "mxnet", "replicaSpecs", _MX_LIST.types, "SCHEDULER", "mxReplicaType", extra=(("jobMode", "dist"),)
    ),
    ("mpba.fbk.eu/v1", "MXJob"): Shape("mxnet", "", _MX_LIST.types, "SCHEDULER", "replicaType"),
    ("kubeflow.org/v1", "PaddleJob"): Shape("paddle", "paddleReplicaSpecs", (("Worker", 2),), "Worker"),
    ("kubeflow.org/v1", "PyTorchJob"): Shape(
        "pytorch", "pytorchReplicaSpecs", (("Master", 1), ("Worker", 1)), "Master"
    ),
    ("kubeflow.org/v1", "TFJob"): Shape("tensorflow", "tfReplicaSpecs", (("Chief", 1), ("Worker", 1)), "Chief"),
    ("kubeflow.org/v1alpha1", "TFJob"): Shape(
        "tensorflow", "replicaSpecs", (("MASTER", 1), ("WORKER", 1)), "MASTER", "tfReplicaType"
    ),
    ("tensorflow.org/v1alpha1", "TfJob"): Shape(
        "tensorflow", "replicaSpecs", (("MASTER", 1),), "MASTER", "tfReplicaType"
    ),
    ("kubeflow.org/v1", "XGBoostJob"): Shape("xgboost", "xgbReplicaSpecs", (("Master", 1), ("Worker", 1)), "Master"),
}  # fmt: skip


def shape_of(api_version: str, kind: str) -> Shape:
    """Raises KeyError for a kind without a shape: add it to ``SHAPES``."""
    return SHAPES[api_version, kind]


def pod_template(container: str, node: int, restart_policy: str = "") -> Resource:
    """A pod template on the simulated node of that index; ``restart_policy`` only if given."""
    spec: Resource = {
        "nodeName": node_name(node),
        "tolerations": [{"operator": "Exists"}],
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": container, "image": IMAGE, "command": ["train"]}],
    }
    if restart_policy:
        spec["restartPolicy"] = restart_policy
    return {"spec": spec}


def small_job(
    api_version: str, kind: str, name: str, node: int = 0, run_policy: Mapping[str, Any] | None = None
) -> Resource:
    """A valid job of one to three pods. ``run_policy`` has no place in a kind whose spec is the list of replicas."""
    shape = shape_of(api_version, kind)
    in_template = shape.retry_policy if shape.type_field else "Never" if shape.single else ""

    def template() -> Resource:
        return pod_template(shape.container, node, in_template)

    replicas: Any
    if shape.single:
        replicas = {"replicas": shape.types[0][1], "template": template()}
    elif shape.type_field:
        replicas = [{shape.type_field: type_, "replicas": n, "template": template()} for type_, n in shape.types]
    else:
        policy = shape.retry_policy or "Never"
        replicas = {
            type_: {shape.count_field: n, "restartPolicy": policy, "template": template()} for type_, n in shape.types
        }  # fmt: skip
    spec: Any = {**copy.deepcopy(dict(shape.extra)), shape.field: replicas} if shape.field else replicas
    if run_policy and isinstance(spec, dict):
        spec["runPolicy"] = dict(run_policy)
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}
