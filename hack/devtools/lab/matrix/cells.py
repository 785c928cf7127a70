"""The frameworks with their jobs, and the cells of the matrix: what happens to whom under which policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from devtools.definitions import load
from devtools.testbed.jobs import JobKind, kind_of

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
    """Such as ``kubeflow.org/v1 PyTorchJob``."""
    types: Mapping[str, int]
    """Replicas of each type."""
    command: Sequence[str]
    leader: str
    """The replica on which the others depend, as ``type-index``."""
    worker: str
    servers: Sequence[str] = ()
    """Types that serve inside the framework: they can neither raise an exception nor exit in a step."""
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

    @property
    def job_kind(self) -> JobKind:
        return kind_of(*self.kind.split())


def _read(entry: Mapping[str, Any]) -> Framework:
    return Framework(**{**entry, "command": [PROGRAM if one == "PROGRAM" else one for one in entry["command"]]})


FRAMEWORKS = tuple(map(_read, load(Path(__file__).with_name("frameworks.yaml").read_text(encoding="utf-8"))))


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
    if not (framework.elastic or framework.job_kind.has_batch_job):  # elastic replicas do not restart together
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
    framework, kind = cell.framework, cell.framework.job_kind
    late = LATE.get(cell.event, 0)
    replicas = {}
    for type_, count in framework.types.items():
        command = ["/usr/sbin/sshd", "-De"] if type_ in framework.own_command else list(framework.command)
        if late and type_.lower() == cell.victim.rpartition("-")[0]:
            wait = f'case $(uname -n) in *{cell.victim}) sleep {late};; esac; exec "$@"'
            command = ["sh", "-c", wait, "sh", *command]
        container = {
            "name": kind.container, "image": framework.image, "command": command,
            "env": [{"name": "MATRIX_STEPS", "value": str(steps(cell))}],
            "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "1Gi"}},
            "volumeMounts": [{"name": "matrix", "mountPath": "/matrix"}],
        }  # fmt: skip
        volume = {"name": "matrix", "configMap": {"name": "matrix"}}
        replicas[type_] = count, {"spec": {"containers": [container], "volumes": [volume]}}
    policy: dict[str, Any] = {"cleanPodPolicy": "None", "backoffLimit": 6}
    if cell.scope != "Replica":
        policy["restartScope"] = cell.scope
    job = kind.job(name, replicas, cell.policy, **_spec(framework, name), runPolicy=policy)
    job["metadata"]["labels"] = LABELS
    return job


def _spec(framework: Framework, name: str) -> dict[str, Any]:
    """The further fields. etcd keeps a finished rendezvous, so each job has one of its own."""
    elastic = framework.spec.get("elasticPolicy") or {}
    own = {"elasticPolicy": {**elastic, "rdzvId": name}} if "rdzvId" in elastic else {}
    return {**framework.spec, **own}
