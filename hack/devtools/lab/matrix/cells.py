"""The frameworks with their jobs, and the cells of the matrix: what happens to whom under which policy. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

STEPS = 40
LABELS = {"dljob-test/operator": "own"}
"""Of each job: an operator that tests share ignores it."""
PROGRAM = "/matrix/training.py"
GROW, SUSPEND, EVICT = "3 workers, then 2", "suspended, resumed", "evicted"
REPLACE = "deleted 10 times"
REPLACEMENTS = 10
ETCD = "etcd-service"
"""The Service of the etcd server, which the harness creates from its example."""
LATE = {"10 s late": 10, "150 s late": 150}
SIGNALS = ("SIGKILL", "SIGTERM")
ASKED = {"OOM": "oom", "exception": "exception", "exit 3": "exit 3"}
FAILURES = (*SIGNALS, *ASKED)


@dataclass(frozen=True)
class Framework:
    """One framework in one version, and the job that trains with it."""

    key: str
    title: str
    image: str
    kind: str
    replicas_field: str
    container: str
    types: Mapping[str, int]
    """Replicas of each type."""
    command: Sequence[str]
    leader: str
    """The replica on which the others depend, as ``type-index``."""
    worker: str
    servers: Sequence[str] = ()
    """Types that serve inside the framework: they can neither raise an exception nor exit in a step."""
    version: str = "v1"
    spec: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the job's spec."""
    own_command: Sequence[str] = ()
    """Types that keep the image's or the operator's command."""
    policies: Sequence[str] = ("OnFailure", "ExitCode", "Never")
    elastic: bool = False
    is_elastic_only: bool = False
    """Whether it runs only the cells in which workers come and go."""
    later: int = 0
    """Added to the rank of its cells."""
    note: str = ""

    @property
    def plural(self) -> str:
        return f"{self.kind.lower()}s"


def _mpi(key: str, title: str, image: str, later: int = 0, **spec: str) -> Framework:
    command = ("mpirun", "-n", "2", "python3", PROGRAM, "mpi")
    return Framework(
        key, title, image, "MPIJob", "mpiReplicaSpecs", "mpi", {"Launcher": 1, "Worker": 2}, command, "launcher",
        "worker-1",
        servers=("launcher",), version="v2beta1", own_command=("Worker",), policies=("OnFailure", "Never"),
        spec={"slotsPerWorker": 1, "sshAuthMountPath": "/home/mpiuser/.ssh", **spec},
        later=later, note="Signals to a worker go to its sshd; the other faults are the rank's.",
    )  # fmt: skip


_TORCH = ("torchrun", PROGRAM, "torch")
_PYTORCH = ("PyTorchJob", "pytorchReplicaSpecs", "pytorch")
_TWO = {"Master": 1, "Worker": 1}
_ELASTIC: Mapping[str, Any] = {
    "nprocPerNode": "1",
    "elasticPolicy": {
        "minReplicas": 1, "maxReplicas": 3, "rdzvBackend": "c10d",
        "rdzvConf": [{"key": "last_call_timeout", "value": "3"}],
    },
}  # fmt: skip
_ETCD: Mapping[str, Any] = {
    **_ELASTIC,
    "elasticPolicy": {
        **_ELASTIC["elasticPolicy"],
        "rdzvBackend": "etcd-v2", "rdzvHost": ETCD, "rdzvPort": 2379, "rdzvId": "of the job",
    },
}  # fmt: skip
_ONE = {"nprocPerNode": "1"}


def _python(name: str) -> tuple[str, ...]:
    return ("python", PROGRAM, name)


FRAMEWORKS = (
    Framework("torch2", "PyTorch 2, torchrun", "dljob/pytorch-digits:2", *_PYTORCH, _TWO, _TORCH, "master-0",
              "worker-0", spec=_ONE),
    Framework("elastic2", "PyTorch 2, elastic with c10d", "dljob/pytorch-digits:2", *_PYTORCH, {"Worker": 2}, _TORCH,
              "worker-0", "worker-1", spec=_ELASTIC, elastic=True),
    Framework("etcd2", "PyTorch 2, elastic with etcd", "dljob/pytorch-digits:2", *_PYTORCH, {"Worker": 2}, _TORCH,
              "worker-0", "worker-1", spec=_ETCD, elastic=True, is_elastic_only=True),
    Framework("mirrored", "TensorFlow 2, MultiWorkerMirroredStrategy", "dljob/tensorflow-digits:1", "TFJob",
              "tfReplicaSpecs", "tensorflow", {"Worker": 2}, _python("mirrored"), "worker-0", "worker-1"),
    Framework("jax", "JAX 0.10", "dljob/jax-digits:1", "JAXJob", "jaxReplicaSpecs", "jax", {"Worker": 2},
              _python("jax"), "worker-0", "worker-1"),
    Framework("mxnet", "MXNet 1.9, dist_sync, the scheduler", "dljob/mxnet-digits:1", "MXJob", "mxReplicaSpecs",
              "mxnet", {"Scheduler": 1, "Server": 1, "Worker": 2}, _python("mxnet"), "scheduler-0", "worker-1",
              servers=("scheduler", "server"), spec={"jobMode": "MXTrain"}),
    _mpi("openmpi5", "Open MPI 5", "dljob/mpi-digits:5"),
    _mpi("openmpi4", "Open MPI 4.1", "dljob/mpi-digits:1"),
    Framework("xgboost", "XGBoost 3", "dljob/xgboost-digits:1", "XGBoostJob", "xgbReplicaSpecs", "xgboost", _TWO,
              _python("xgboost"), "master-0", "worker-0"),
    Framework("torch1", "PyTorch 1.13, torchrun", "dljob/pytorch-digits:1", *_PYTORCH, _TWO, _TORCH, "master-0",
              "worker-0", spec=_ONE, later=1),
    Framework("servers", "TensorFlow 2, ParameterServerStrategy, the parameter server", "dljob/tensorflow-digits:1",
              "TFJob", "tfReplicaSpecs", "tensorflow", {"Chief": 1, "PS": 1, "Worker": 1}, _python("parameter_server"),
              "ps-0", "worker-0", servers=("ps", "worker"), later=1),
    Framework("paddle", "PaddlePaddle 3", "dljob/paddle-digits:1", "PaddleJob", "paddleReplicaSpecs", "paddle",
              {"Worker": 2}, ("python", "-m", "paddle.distributed.launch", PROGRAM, "paddle"), "worker-0", "worker-1",
              later=1),
    Framework("mxnet-server", "MXNet 1.9, dist_sync, the server", "dljob/mxnet-digits:1", "MXJob", "mxReplicaSpecs",
              "mxnet", {"Scheduler": 1, "Server": 1, "Worker": 2}, _python("mxnet"), "server-0", "worker-0",
              servers=("scheduler", "server"), spec={"jobMode": "MXTrain"}, later=1),
    Framework("lightgbm", "LightGBM 4", "dljob/xgboost-digits:1", "XGBoostJob", "xgbReplicaSpecs", "xgboost", _TWO,
              _python("lightgbm"), "master-0", "worker-0", later=1),
    _mpi("mpich", "MPICH 5", "dljob/mpi-digits:mpich", later=1, mpiImplementation="MPICH"),
    Framework("jax04", "JAX 0.4", "dljob/jax-digits:0.4", "JAXJob", "jaxReplicaSpecs", "jax", {"Worker": 2},
              _python("jax"), "worker-0", "worker-1", later=1),
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One job and what happens to it."""

    framework: Framework
    victim: str
    """The replica, "" where the event is the whole job's."""
    event: str
    policy: str
    scope: str
    rank: int
    """The smaller, the earlier it runs."""

    @property
    def key(self) -> str:
        return "/".join((self.framework.key, self.victim, self.event, self.policy, self.scope))

    @property
    def waits(self) -> bool:
        """Whether it hardly computes: it may run beside the others."""
        return LATE.get(self.event, 0) > 60


def cells(framework: Framework) -> Iterator[Cell]:
    """The cells of one framework in the order of its table."""
    first, second, worker = framework.policies[0], "ExitCode", framework.worker

    def cell(rank: int, victim: str, event: str, policy: str = first, scope: str = "Replica") -> Cell:
        return Cell(framework, victim, event, policy, scope, rank)

    if framework.elastic:
        yield cell(0, "", GROW)
        yield cell(0, worker, REPLACE)
    if framework.is_elastic_only:
        return
    for victim in (worker, framework.leader):
        for event in FAILURES:
            if event == "exception" and victim.partition("-")[0] in framework.servers:
                continue
            if event in ASKED and victim in framework.servers:
                continue  # an mpirun, which has no program of ours
            early = event in ("SIGKILL", "exit 3" if victim == worker else "SIGKILL")
            yield cell(0 if early else 2, victim, event)
    if second in framework.policies:
        yield cell(0, worker, "OOM", second)
        yield cell(2, worker, "exit 3", second)
        yield cell(2, worker, "SIGTERM", second)
        yield cell(1, framework.leader, "SIGKILL", second)
    yield cell(2, worker, "SIGKILL", "Never")
    yield cell(3, worker, "OOM", "Never")
    if framework.version == "v1" and not framework.elastic:  # elastic replicas do not restart together
        yield cell(1, worker, "SIGKILL", first, "Job")
        yield cell(2, framework.leader, "SIGKILL", first, "Job")
    yield cell(2, worker, "10 s late")
    yield cell(1, worker, "150 s late")
    yield cell(1, "", SUSPEND)
    yield cell(1, worker, EVICT)


def ordered(chosen: Sequence[Framework]) -> list[Cell]:
    """All cells: those that say most first, and the frameworks in turn."""
    every = [cell for framework in chosen for cell in cells(framework)]
    return sorted(every, key=lambda cell: cell.rank + cell.framework.later)


def steps(cell: Cell) -> int:
    """The number of steps of the training: more where it must outlast changes of its size.

    It begins again after each of them.
    """
    return 3 * STEPS if cell.event in (GROW, REPLACE) else STEPS


def manifest(cell: Cell, name: str) -> dict[str, Any]:
    """The job. Its program comes from the ConfigMap ``matrix``."""
    framework = cell.framework
    late = LATE.get(cell.event, 0)
    specs = {}
    for type_, count in framework.types.items():
        command = list(framework.command)
        if type_ in framework.own_command:
            command = ["/usr/sbin/sshd", "-De"]
        if late and type_.lower() == cell.victim.rpartition("-")[0]:
            wait = f'case $(uname -n) in *{cell.victim}) sleep {late};; esac; exec "$@"'
            command = ["sh", "-c", wait, "sh", *command]
        container = {
            "name": framework.container, "image": framework.image, "command": command,
            "env": [{"name": "MATRIX_STEPS", "value": str(steps(cell))}],
            "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "1Gi"}},
            "volumeMounts": [{"name": "matrix", "mountPath": "/matrix"}],
        }  # fmt: skip
        specs[type_] = {
            "replicas": count,
            "restartPolicy": cell.policy,
            "template": {
                "spec": {"containers": [container], "volumes": [{"name": "matrix", "configMap": {"name": "matrix"}}]}
            },
        }
    policy: dict[str, Any] = {"cleanPodPolicy": "None", "backoffLimit": 6}
    if cell.scope != "Replica":
        policy["restartScope"] = cell.scope
    return {
        "apiVersion": f"kubeflow.org/{framework.version}",
        "kind": framework.kind,
        "metadata": {"name": name, "labels": LABELS},
        "spec": {**_spec(framework, name), "runPolicy": policy, framework.replicas_field: specs},
    }


def _spec(framework: Framework, name: str) -> dict[str, Any]:
    """The further fields. etcd keeps a finished rendezvous, so each job has one of its own."""
    elastic = framework.spec.get("elasticPolicy") or {}
    own = {"elasticPolicy": {**elastic, "rdzvId": name}} if "rdzvId" in elastic else {}
    return {**framework.spec, **own}
