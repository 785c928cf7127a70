"""The workloads' objects: MXJobs of kubeflow.org/v1, which all peers support, and its other kinds. Pure."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from devtools.lab.bench.training_operator import KINDS
from devtools.testbed.cluster.kwok import node_name
from devtools.testbed.jobs import JobKind, Resource, declarations, kind_of, pod_template

JOB_LABEL = "training.kubeflow.org/job-name"
"""The label that all peers set on every pod."""
CONTAINER = "mxnet"
API_VERSION = "kubeflow.org/v1"
_DECLARED = (kind for keys in declarations().values() for kind in keys["kinds"])
_OF_V1 = (kind["kind"] for kind in _DECLARED if f"{kind['group']}/v1" == API_VERSION and "v1" in kind["versions"])
OTHER_KINDS = tuple(kind for kind in dict.fromkeys((*KINDS, *_OF_V1)) if kind != "MXJob")
"""The kinds of kubeflow.org/v1 but MXJob, those of training-operator first."""
AT_STARTUP = "AtStartup MPIJob"
"""Among the kinds of a peer: MPIJobs of v2beta1 whose launcher is created at once, as training-operator does in v1."""
LARGE_KIND = "PyTorchJob"
SMALLEST = 4
"""Pods of an ordinary job: a scheduler, a server, two workers."""


@dataclass(frozen=True)
class Sizes:
    """The size of each workload. ``quick`` only tests the harness."""

    nodes: int = 44
    """Simulated nodes at least: each runs up to 250 pods."""
    singles: int = 40
    """A single job takes 15 to 60 ms: the median of ten of them still varies by a third."""
    many: int = 100
    of_each_kind: int = 20
    most: int = 1000
    replicas: tuple[int, ...] = (200, 1000)
    large: int = 5000
    """Replicas of the largest job, a PyTorchJob: the size of MX_CONFIG allows about 3,500."""
    beside: int = 500
    """Small jobs beside the large one at most. Of 200, the p99 is the third slowest, which varies by half."""
    changes: int = 5
    failovers: int = 2
    """Leaders killed, and as many stopped."""
    long_jobs: int = 10
    long_bytes: int = 1_500_000
    """Size of the spec of each long job, of many short texts."""
    idle_seconds: float = 10.0
    longest_rest: float = 120.0
    """Seconds before the idle phase at most, for a peer that frees memory when it has no work."""
    settle_seconds: float = 2.0
    """Seconds that a peer gets for its remaining writes after the last awaited event."""
    waits_for_end: bool = True
    """Whether to wait until a session's namespace is gone, since its deletion would distort the next session."""
    growth: tuple[int, ...] = (100, 300, 1000, 3000, 10_000)
    """Number of jobs after each step."""


FULL = Sizes()
QUICK = Sizes(
    nodes=2,
    singles=2,
    many=4,
    of_each_kind=2,
    most=10,
    replicas=(12,),
    large=300,  # with 60, all of them existed on a slow machine before the first small job was created
    beside=2,
    changes=2,
    failovers=1,
    long_jobs=2,
    idle_seconds=1.0,
    longest_rest=0.0,
    settle_seconds=0.2,
    waits_for_end=False,
    growth=(4, 8),
)


def job(name: str, pods: int = SMALLEST, node: str = "kwok-0000") -> Resource:
    """An MXJob of ``pods`` processes: one scheduler, one server, the rest workers."""
    if pods < 3:
        raise ValueError(f"a job has a scheduler, a server and at least one worker: not {pods} pods")
    return _job("MXJob", name, {"Scheduler": 1, "Server": 1, "Worker": pods - 2}, node)


def large_job(name: str, pods: int, node: str = "kwok-0000") -> Resource:
    """A PyTorchJob of ``pods`` processes, one of them the master: no variable of its pods grows with their number."""
    return _job(LARGE_KIND, name, {"Master": 1, "Worker": pods - 1} if pods > 1 else {"Master": 1}, node)


def _job(kind: str, name: str, counts: Mapping[str, int], node: str) -> Resource:
    made = kind_of(API_VERSION, kind)
    replicas = {type_: (count, pod_template(made.container, node)) for type_, count in counts.items()}
    return made.job(name, replicas, runPolicy={"cleanPodPolicy": "None"})


def jobs(prefix: str, count: int, nodes: int, pods: int = SMALLEST) -> Iterator[Resource]:
    """``count`` jobs, spread over ``nodes`` simulated nodes."""
    for number in range(count):
        yield job(f"{prefix}-{number:04d}", pods, node_name(number % nodes))


def long_job(name: str, size: int, node: str = "kwok-0000") -> Resource:
    """A PyTorchJob of one pod whose arguments have ``size`` bytes as JSON."""
    made = large_job(name, 1, node)
    template = made["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    template["spec"]["containers"][0]["args"] = [f"{number:07d}" for number in range(size // 10)]
    return made


def collection(kind: str, namespace: str) -> str:
    """The path of the jobs of a kind of kubeflow.org/v1."""
    return kind_of(API_VERSION, kind).collection(namespace)


@functools.cache
def kind_named(kind: str) -> JobKind:
    if kind == AT_STARTUP:
        return replace(kind_of("kubeflow.org/v2beta1", "MPIJob"), extra={"launcherCreationPolicy": "AtStartup"})
    return kind_of(API_VERSION, kind)


def jobs_of(kind: str, prefix: str, count: int, nodes: int) -> tuple[list[Resource], int]:
    """``count`` jobs of one of the other kinds, spread over the nodes, and the number of pods of each."""
    of = kind_named(kind)
    return [of.small_job(f"{prefix}-{number:04d}", number % nodes) for number in range(count)], of.pods


def of_kind(kind: str, count: int) -> str:
    """The name of the samples of ``count`` jobs of a kind."""
    return f"{count} {kind}s"


def of_replicas(pods: int) -> str:
    """The name of the samples of one job of ``pods`` pods."""
    return f"{pods} replicas"


def one_more_worker(workers: int) -> Resource:
    """The merge patch that changes a running job: it then has ``workers`` + 1 workers."""
    return {"spec": {"mxReplicaSpecs": {"Worker": {"replicas": workers + 1}}}}
