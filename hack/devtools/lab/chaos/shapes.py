"""What a job of each kind and API flavor looks like, and its outcome. Pure.

The nodes are simulated (:mod:`.nodes`): a pod ends as its annotations say, which a job's template contains.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

EXIT = "chaos.dljob.operator/exit"
"""The exit code of every container of the pod. A pod without this annotation runs until it is deleted."""
FIRST_EXIT = "chaos.dljob.operator/first-exit"
"""The exit code of the first attempt, where it differs."""
UNLUCKY_EXIT = "chaos.dljob.operator/unlucky-exit"
"""The exit code of the pods whose name matches UNLUCKY. All pods of a batch Job have the attempt of that Job, and a
random name."""
UNLUCKY = "[2-9b]$"
"""Three in ten of the names that Kubernetes generates, whose last character is one of bcdfghjklmnpqrstvwxz2456789."""
SECONDS = "chaos.dljob.operator/seconds"
"""The time that the pod runs, as a duration."""
TIME = "chaos.dljob.operator/time"
"""The time that the pod's node reports instead of the real one: the skew of the node's clock."""
NODE_LABEL = {"chaos.dljob.operator/node": "simulated"}
SUCCEEDED, FAILED = "Succeeded", "Failed"
RETRYABLE, PERMANENT = "137", "1"
SKEWED = ("2001-02-03T04:05:06Z", "2099-01-01T00:00:00Z")
"""Times of nodes whose clock is wrong: far before the operator's, and far after it."""


@dataclass(frozen=True)
class Ending:
    """How the pods of a replica type end."""

    exit: str | None = "0"
    """None for a pod that runs until it is deleted."""
    first_exit: str | None = None
    seconds: float = 2.0
    unlucky_exit: str | None = None
    clocks: tuple[str, ...] = SKEWED
    """Wrong times that the pods' node may report."""


@dataclass(frozen=True)
class Shape:
    """How to write the manifests of one kind; ``build`` gets the random source of the job."""

    title: str
    build: Callable[[random.Random], Mapping[str, Any]]
    outcome: str = SUCCEEDED


def template(container: str, ending: Ending, source: random.Random, policy: str = "") -> dict[str, Any]:
    annotations = {SECONDS: f"{ending.seconds + source.uniform(0, 3):.1f}s"}
    if ending.exit is not None:
        annotations[EXIT] = ending.exit
    if ending.first_exit is not None:
        annotations[FIRST_EXIT] = ending.first_exit
    if ending.unlucky_exit is not None:
        annotations[UNLUCKY_EXIT] = ending.unlucky_exit
    if source.random() < 0.2:
        annotations[TIME] = source.choice(ending.clocks)
    return {
        "metadata": {"annotations": annotations},
        "spec": {
            **({"restartPolicy": policy} if policy else {}),
            "nodeSelector": dict(NODE_LABEL),
            "tolerations": [{"operator": "Exists"}],
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": source.choice((0, 1, 2)),
            "containers": [{"name": container, "image": "example.com/none:1", "command": ["train"]}],
        },
    }


@dataclass(frozen=True)
class Layout:
    """The parts of a manifest that differ between the API flavors."""

    api_version: str
    kind: str
    container: str
    replicas: str = ""
    """The field with the replicas."""
    type_field: str = ""
    """The field of an entry with its replica type, in the list layouts."""
    count: str = "replicas"
    """The field of an entry with the number of replicas."""

    def manifest(self, spec: Any) -> dict[str, Any]:
        return {"apiVersion": self.api_version, "kind": self.kind, "spec": spec}


MXNET_V1 = Layout("kubeflow.org/v1", "MXJob", "mxnet", "mxReplicaSpecs")
MXNET_ALPHA = Layout("kubeflow.org/v1alpha1", "MXJob", "mxnet", "replicaSpecs", "mxReplicaType")
MXNET_FIRST = Layout("fioravanzo.org/v1alpha1", "MXJob", "mxnet", "replicaSpecs", "mxReplicaType")
MXNET_LIST = Layout("mpba.fbk.eu/v1", "MXJob", "mxnet", "", "replicaType")
TENSORFLOW_V1 = Layout("kubeflow.org/v1", "TFJob", "tensorflow", "tfReplicaSpecs")
TENSORFLOW_ALPHA = Layout("kubeflow.org/v1alpha1", "TFJob", "tensorflow", "replicaSpecs", "tfReplicaType")
TENSORFLOW_FIRST = Layout("tensorflow.org/v1alpha1", "TfJob", "tensorflow", "replicaSpecs", "tfReplicaType")
PYTORCH = Layout("kubeflow.org/v1", "PyTorchJob", "pytorch", "pytorchReplicaSpecs")
JAX = Layout("kubeflow.org/v1", "JAXJob", "jax", "jaxReplicaSpecs")
PADDLE = Layout("kubeflow.org/v1", "PaddleJob", "paddle", "paddleReplicaSpecs")
XGBOOST = Layout("kubeflow.org/v1", "XGBoostJob", "xgboost", "xgbReplicaSpecs")
MPI_V1 = Layout("kubeflow.org/v1", "MPIJob", "mpi", "mpiReplicaSpecs")
MPI = Layout("kubeflow.org/v2beta1", "MPIJob", "mpi", "mpiReplicaSpecs")
ANY = Layout("dljob.operator/v1", "DLJob", "pytorch", "replicas", count="count")
CAFFE2 = Layout("kubeflow.org/v1alpha1", "Caffe2Job", "caffe2", "replicaSpecs")

Types = Mapping[str, tuple[int, Ending]]
"""Number and ending of the replicas of each type."""
LAST = Ending(seconds=6)
"""The success target, which ends after the others."""
FOREVER = Ending(exit=None)


def by_type(layout: Layout, types: Types, policy: str = "ExitCode", **more: Any) -> Callable[..., dict[str, Any]]:
    """A job of v1: a map of replica types."""

    def build(source: random.Random) -> dict[str, Any]:
        replicas = {
            name: {layout.count: count, "restartPolicy": policy, "template": template(layout.container, ending, source)}
            for name, (count, ending) in types.items()
        }
        return layout.manifest({layout.replicas: replicas, **more})

    return build


def as_list(layout: Layout, types: Types, **more: Any) -> Callable[..., dict[str, Any]]:
    """A job of an early operator: a list of replicas. The operator restarts what fails, with a new pod."""

    def build(source: random.Random) -> dict[str, Any]:
        entries = [
            {
                "replicas": count,
                layout.type_field: name,
                "template": template(layout.container, ending, source, "Never"),
            }
            for name, (count, ending) in types.items()
        ]
        return layout.manifest({layout.replicas: entries, **more} if layout.replicas else entries)

    return build


def single(count: int, ending: Ending, policy: str, **more: Any) -> Callable[..., dict[str, Any]]:
    """A Caffe2Job: one replica type."""

    def build(source: random.Random) -> dict[str, Any]:
        backend = {"backendType": "none"} if count == 1 else {"backendType": "redis", "redisHost": "redis"}
        replicas = {"replicas": count, "template": template(CAFFE2.container, ending, source, policy)}
        return CAFFE2.manifest({"backendSpecs": backend, "replicaSpecs": replicas, **more})

    return build


def mpi(
    launcher: Ending,
    worker: tuple[int, Ending],
    policies: tuple[str, str] = ("OnFailure", "OnFailure"),
    layout: Layout = MPI,
    **more: Any,
) -> Callable[..., dict[str, Any]]:
    """A job with a launcher, which (but in v1) a batch Job runs, and workers; ``policies`` are those of the two.

    Under Never a lost worker fails the job. So only a job that fails in any case has that policy.
    """
    # Kubernetes does not retry a pod that ended in the future before that time has come
    past = replace(launcher, clocks=SKEWED[:1])

    def build(source: random.Random) -> dict[str, Any]:
        types = {"Launcher": (1, past), "Worker": worker}
        replicas = {
            name: {layout.count: count, "restartPolicy": policy, "template": template(layout.container, ending, source)}
            for (name, (count, ending)), policy in zip(types.items(), policies, strict=True)
        }
        return layout.manifest({layout.replicas: replicas, **more})

    return build


_RETRIED = Ending(first_exit=RETRYABLE)
_RETRIED_FOREVER = Ending(exit=None, first_exit=RETRYABLE)
_PERMANENT = Ending(exit=PERMANENT)
SHAPES: tuple[Shape, ...] = (
    Shape(
        "MXJob v1",
        by_type(
            MXNET_V1,
            {"Scheduler": (1, LAST), "Server": (1, FOREVER), "Worker": (2, Ending())},
            jobMode="MXTrain",
            runPolicy={"cleanPodPolicy": "Running"},
        ),
    ),
    Shape(
        "MXJob v1, retried workers",
        by_type(
            MXNET_V1,
            {"Scheduler": (1, Ending(seconds=12)), "Server": (1, FOREVER), "Worker": (2, _RETRIED)},
            jobMode="MXTrain",
            runPolicy={"cleanPodPolicy": "All"},
        ),
    ),
    Shape(
        "MXJob v1, failed",
        by_type(MXNET_V1, {"Scheduler": (1, Ending("1")), "Worker": (1, FOREVER)}, jobMode="MXTrain"),
        FAILED,
    ),
    Shape(
        "MXJob v1, restarted as a whole",
        by_type(
            MXNET_V1,
            {"Scheduler": (1, LAST), "Worker": (2, _RETRIED)},
            jobMode="MXTrain",
            runPolicy={"restartScope": "Job"},
        ),
    ),
    Shape(
        "MXJob v1, backoff limit",
        by_type(
            MXNET_V1,
            {"Scheduler": (1, Ending(RETRYABLE, seconds=1))},
            jobMode="MXTrain",
            runPolicy={"backoffLimit": 2},
        ),
        FAILED,
    ),
    Shape(
        "MXJob v1, suspended at first",
        by_type(
            MXNET_V1,
            {"Scheduler": (1, LAST), "Worker": (2, Ending())},
            jobMode="MXTrain",
            runPolicy={"suspend": True},
        ),
    ),
    Shape(
        "MXJob v1alpha1",
        as_list(
            MXNET_ALPHA,
            {"SCHEDULER": (1, LAST), "SERVER": (1, FOREVER), "WORKER": (2, Ending())},
            jobMode="dist",
        ),
    ),
    Shape(
        "MXJob of fioravanzo.org, retried",
        as_list(
            MXNET_FIRST,
            {"SCHEDULER": (1, Ending(first_exit=RETRYABLE, seconds=3)), "WORKER": (2, _RETRIED)},
            jobMode="dist",
        ),
    ),
    Shape(
        "MXJob of mpba.fbk.eu",
        as_list(MXNET_LIST, {"SCHEDULER": (1, LAST), "SERVER": (1, FOREVER), "WORKER": (2, _RETRIED)}),
    ),
    Shape(
        "TFJob v1",
        by_type(
            TENSORFLOW_V1,
            {"Chief": (1, LAST), "PS": (1, FOREVER), "Worker": (2, Ending())},
            runPolicy={"cleanPodPolicy": "Running"},
        ),
    ),
    Shape(
        "TFJob v1, all workers, retried",
        by_type(TENSORFLOW_V1, {"Worker": (3, _RETRIED)}, successPolicy="AllWorkers"),
    ),
    Shape(
        "TFJob v1alpha1",
        as_list(TENSORFLOW_ALPHA, {"MASTER": (1, LAST), "PS": (1, FOREVER), "WORKER": (1, _RETRIED)}),
    ),
    Shape(
        "TfJob",
        as_list(TENSORFLOW_FIRST, {"MASTER": (1, LAST), "PS": (1, FOREVER), "WORKER": (2, Ending())}),
    ),
    Shape("Caffe2Job, one replica", single(1, Ending(), "OnFailure")),
    Shape("Caffe2Job", single(3, Ending(), "OnFailure")),
    Shape("Caffe2Job, failed", single(2, _PERMANENT, "Never"), FAILED),
    Shape("PyTorchJob", by_type(PYTORCH, {"Master": (1, LAST), "Worker": (2, Ending())})),
    Shape(
        "PyTorchJob, restarted as a whole",
        by_type(PYTORCH, {"Master": (1, _RETRIED), "Worker": (2, Ending())}, runPolicy={"restartScope": "Job"}),
    ),
    Shape(
        "PyTorchJob, elastic",
        by_type(PYTORCH, {"Worker": (2, Ending())}, elasticPolicy={"minReplicas": 1, "maxReplicas": 4}),
    ),
    Shape("PyTorchJob, failed", by_type(PYTORCH, {"Master": (1, _PERMANENT), "Worker": (1, FOREVER)}), FAILED),
    Shape("JAXJob, restarted as a whole", by_type(JAX, {"Worker": (3, _RETRIED)}, runPolicy={"restartScope": "Job"})),
    Shape("PaddleJob, parameter servers", by_type(PADDLE, {"Master": (2, LAST), "Worker": (2, _RETRIED)})),
    Shape("DLJob, retried", by_type(ANY, {"Master": (1, LAST), "Worker": (2, _RETRIED)}, framework="pytorch")),
    Shape("XGBoostJob, retried", by_type(XGBOOST, {"Master": (1, LAST), "Worker": (2, _RETRIED)})),
    Shape("MPIJob", mpi(LAST, (2, FOREVER), runPolicy={"cleanPodPolicy": "Running"})),
    Shape(
        "MPIJob, retried launcher",
        mpi(
            Ending(unlucky_exit=RETRYABLE),
            (1, FOREVER),
            ("Never", "OnFailure"),
            # a deleted pod counts too
            runPolicy={"backoffLimit": 20, "cleanPodPolicy": "All"},
        ),
    ),
    Shape(
        "MPIJob, backoff limit",
        mpi(
            Ending(PERMANENT, seconds=1),
            (1, FOREVER),
            ("Never", "OnFailure"),
            runPolicy={"backoffLimit": 1, "cleanPodPolicy": "Running"},
        ),
        FAILED,
    ),
    Shape(
        "MPIJob, failed worker",
        mpi(FOREVER, (2, _PERMANENT), ("OnFailure", "Never"), runPolicy={"cleanPodPolicy": "All"}),
        FAILED,
    ),
    Shape(
        "MPIJob, suspended at first",
        mpi(LAST, (2, FOREVER), runLauncherAsWorker=True, runPolicy={"suspend": True, "cleanPodPolicy": "Running"}),
    ),
    Shape(
        "MPIJob, launcher after retried workers",
        mpi(LAST, (2, _RETRIED_FOREVER), launcherCreationPolicy="WaitForWorkersReady"),
    ),
    Shape(
        "MPIJob, restarted as a whole",
        mpi(
            Ending(seconds=12),
            (2, _RETRIED_FOREVER),
            runPolicy={"restartScope": "Job", "cleanPodPolicy": "Running"},
        ),
    ),
    Shape(
        "MPIJob v1, retried",
        mpi(
            Ending(seconds=6, first_exit=RETRYABLE),
            (2, _RETRIED_FOREVER),
            ("ExitCode", "ExitCode"),
            layout=MPI_V1,
            runPolicy={"cleanPodPolicy": "Running"},
        ),
    ),
    Shape(
        "DLJob of MPI",
        mpi(LAST, (2, _RETRIED_FOREVER), layout=ANY, framework="mpi", runPolicy={"cleanPodPolicy": "All"}),
    ),
)
