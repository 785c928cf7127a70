"""The peers: how each is started, what tells that it is ready, and how much of the work it gets.

A peer is a process of the host, like the embedded engine: with the same machine, connection and account.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from devtools.build.images.compiled_shim import compiled_shim
from devtools.lab.bench import plan, tools, training_operator
from devtools.lab.bench.workloads import AT_STARTUP, OTHER_KINDS
from devtools.paths import ROOT
from devtools.testbed.operator import (
    ANSIBLE_OPERATOR,
    BRIDGE_READY,
    READY,
    RUN,
    OperatorError,
    OperatorProcess,
    bridge_command,
    free_port,
    metrics,
    total,
)

PROGRAMS = ROOT / "benchmarks" / "programs"
OURS, ENGINE, BASELINE, GO_BASELINE = "dljob-operator", "ansible-operator", "baseline", "baseline-go"
USAGE = "dljob-operator-usage"
DEFAULT, LIFTED, STOCK = "training-operator", "training-operator-lifted", "stock-ansible"


@dataclass(frozen=True)
class Limits:
    """Limits on a slow peer's workloads, which leave time for the others. Counts of jobs or pods."""

    singles: int | None = None
    jobs: int | None = None
    replicas: int | None = None
    heavy: bool = True
    """Whether it runs the workloads with ``Sizes.most`` jobs."""
    lasting: bool = True
    """Whether it also runs the workloads after their creation: changes, a restart, finished jobs."""
    large: bool = True
    """Whether it runs the job with ``Sizes.large`` pods."""
    once: tuple[str, ...] = ()
    """The workloads that it runs once, after those of faster peers."""
    timeout: float = 300.0
    """Seconds after which a workload is stopped and its progress is reported."""


@dataclass(frozen=True)
class Peer:
    """``ready`` is a text that the ready peer prints."""

    name: str
    title: str
    command: Callable[[], Sequence[str]]
    ready: str = "ready"
    environment: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    prepare: Callable[[Path], object] = lambda kubeconfig: None
    """Called once before the peer is started for the first time, with the administrator's kubeconfig."""
    clean_up: Callable[[], object] = lambda: None
    """Called once at the end of the run: removes from this machine what ``prepare`` has created."""
    folder: Path = ROOT
    """Its working directory."""
    reports_running: bool = True
    rests_after: float = 0.0
    """Seconds without work after which it has freed what it needs no longer; the idle phase begins then."""
    kinds: tuple[str, ...] = ()
    """The kinds of kubeflow.org/v1 that it reconciles besides MXJob, and AT_STARTUP."""
    standby: str = ""
    """What it prints when another process holds the Lease; "" if it has no flags for an election."""
    reconciles: str = ""
    """The metric that counts its reconciles of MXJobs, as a regular expression; a peer with a metric has the flag
    ``--metrics-bind-address``."""


class Running(OperatorProcess):
    """A peer with a folder for its temporary files, which is gone at the end."""

    def __init__(
        self, peer: Peer, kubeconfig: Path, scratch: Path, arguments: Sequence[str] = (), ready: str = ""
    ) -> None:
        """``arguments`` are further ones, and ``ready`` is another text that it prints when it is ready."""
        self._reconciles = peer.reconciles
        self._metrics = f"127.0.0.1:{free_port()}" if peer.reconciles else ""
        self._temporary = Path(tempfile.mkdtemp(prefix="tmp-", dir=scratch))
        more = [f"--metrics-bind-address={self._metrics}"] if self._metrics else []
        super().__init__(
            kubeconfig, scratch / f"{peer.name}.log", command=[*peer.command(), *arguments, *more],
            ready=ready or peer.ready,
            environment={"TMPDIR": str(self._temporary), **peer.environment}, folder=peer.folder, name=peer.name,
            keeps_log=True,
        )  # fmt: skip

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        shutil.rmtree(self._temporary, ignore_errors=True)

    def reconciles(self) -> float:
        """Number of reconciles since its start; 0 if the peer does not count them."""
        if not self._metrics:
            return 0.0
        try:
            return total(metrics(self._metrics), self._reconciles)
        except OSError as error:
            raise OperatorError(
                f"{self.name} does not serve its reconcile metric: {error}\n{self.log_end()}"
            ) from error


def _program(name: str, *arguments: str) -> Callable[[], Sequence[str]]:
    return lambda: [sys.executable, str(PROGRAMS / name), *arguments]


def _ours(name: str, title: str, *arguments: str, limits: Limits = Limits(), kinds: Sequence[str] = ()) -> Peer:
    return Peer(
        name,
        title,
        lambda: [*RUN, *arguments],
        READY,
        limits=limits,
        kinds=tuple(kinds),
        standby="standing by",
        reconciles=r"dljob_reconciles_total\{",
        rests_after=65.0,  # workers that had no batch for a minute end
    )


def _training_operator(name: str, title: str, command: Callable[[], Sequence[str]], limits: Limits) -> Peer:
    return Peer(
        name,
        f"training-operator {training_operator.VERSION}{title}",
        command,
        training_operator.READY,
        environment=training_operator.ENVIRONMENT,
        limits=limits,
        prepare=training_operator.prepare,
        clean_up=training_operator.clean_up,
        kinds=training_operator.KINDS,
        standby="attempting to acquire leader lease",
        reconciles=training_operator.RECONCILES,
    )


def previous(checkout: Path) -> Peer:
    """The operator of another checkout, with its own environment: for comparison with an older commit.

    Raises ValueError where the folder has no environment, which ``bash hack/venv.sh`` creates there.
    """
    python = checkout / ".venv" / "bin" / "python"
    if not python.is_file():
        raise ValueError(f"--previous: {checkout} has no .venv; create it with `bash hack/venv.sh` there")
    found = subprocess.run(
        ["git", "-C", str(checkout), "log", "-1", "--format=%h"], capture_output=True, text=True, check=True
    )
    return replace(
        PEERS[0],
        name="previous",
        title=f"this operator at {found.stdout.strip()}",
        command=lambda: [str(python), *RUN[1:]],
        environment={"PATH": f"{python.parent}:{os.environ['PATH']}", "PYTHONPATH": ""},
        folder=checkout,
    )


def ansible_operator(environment: Mapping[str, str] = os.environ) -> tuple[Peer, ...]:
    """This operator in the image's default engine, around a real ansible-operator.

    The module proxies do not serve that program, so this peer takes part only where the environment names one.
    """
    binary = environment.get(ANSIBLE_OPERATOR, "")
    if not binary:
        return ()
    engine = replace(
        _OURS[0],
        name=ENGINE,
        title="this operator with ansible-operator (not in CI)",
        command=lambda: bridge_command(binary, compiled_shim()),
        ready=BRIDGE_READY,
        limits=Limits(lasting=False, large=False),
        reconciles="",
    )
    return (engine,)


_OURS = (
    _ours(OURS, "this operator", kinds=(*OTHER_KINDS, AT_STARTUP)),
    # what the option costs: a job of n pods has n + 1 Services, as with training-operator
    _ours(
        "dljob-operator-services", "this operator with a Service for each replica", "--services", "per-replica",
        limits=Limits(heavy=False, once=plan.WORKLOADS),
    ),
    _ours(
        USAGE, "this operator with usage and progress on", "--usage", "on", "--progress", "on",
        "--progress-url", "https://127.0.0.1:8444",
        limits=Limits(heavy=False, lasting=False),
    ),
)  # fmt: skip
PEERS: tuple[Peer, ...] = (
    *_OURS,
    *ansible_operator(),
    # Bare clients that write the same objects without planning, each with its fastest number of connections on two
    # cores: 100 jobs of 4 pods took the Python client 2.7 to 3.1 s with 8, 2.2 to 2.5 s with 16 and 1.8 to 2.2 s with
    # 32 writers, and the Go client, on another machine, 4.0 to 4.4 s with 8, 2.5 to 3.0 s with 32 and 2.4 s with 64.
    Peer(BASELINE, "bare client (baseline)", _program("baseline.py", "--writers=32"), limits=Limits(lasting=False)),
    Peer(
        GO_BASELINE,
        "bare Go client (client-go, protobuf)",
        lambda: [str(tools.baseline()), "--writers=32"],
        limits=Limits(lasting=False),
        prepare=lambda kubeconfig: tools.baseline(),
    ),
    # more sequential jobs would measure its client limit; 1,000 jobs at once take seven minutes
    _training_operator(
        DEFAULT,
        "",
        training_operator.default,
        Limits(singles=10, timeout=500.0, lasting=False, large=False, once=plan.WORKLOADS),
    ),
    _training_operator(LIFTED, ", no client limits", training_operator.lifted, Limits(once=plan.LARGE)),
    # The stock Ansible way: a role of kubernetes.core tasks, a new ansible-runner for each job. The events and the
    # command line are ansible-operator's; its Go binary, which adds a caching proxy, is not used. kubernetes.core
    # comes from the project's environment (hack/devtools/build/collection/dependencies.py).
    Peer(
        STOCK,
        "stock Ansible (cold ansible-runner)",
        _program("stock/cold_operator.py"),
        limits=Limits(singles=2, jobs=6, replicas=0, heavy=False, lasting=False, once=plan.WORKLOADS, timeout=300.0),
        reports_running=False,
    ),
    Peer(
        "kopf",
        f"kopf {tools.KOPF.removeprefix('kopf==')}",
        lambda: [
            *(sys.executable, "-m", "kopf", "run", "--standalone", "--all-namespaces"),
            str(PROGRAMS / "kopf_operator.py"),
        ],
        "Initial authentication has finished",
        environment={"PYTHONPATH": str(tools.packages(tools.KOPF))},
        limits=Limits(heavy=False, lasting=False, once=plan.WORKLOADS, timeout=180.0),
        prepare=lambda kubeconfig: tools.ensure(tools.KOPF),
    ),
)
"""Every peer, in the order of the first round and of the report."""


def chosen(names: str, more: Sequence[Peer] = ()) -> tuple[Peer, ...]:
    """The peers in the comma-separated ``names``; all of them for "". ``more`` are peers of this run, which come
    after this operator. Raises ValueError."""
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    every = (PEERS[0], *more, *PEERS[1:])
    known = {peer.name: peer for peer in every}
    for name in wanted:
        if name not in known:
            raise ValueError(f"there is no peer {name!r}; the peers are {', '.join(known)}")
    return tuple(peer for peer in every if not wanted or peer.name in wanted)
