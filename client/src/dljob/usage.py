"""Who holds what: requests of the pods that have a node, and what they use. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any

from dljob import quantity
from dljob.kinds import Resource
from dljob.view import JobView, is_gpu, pod_requests

ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Usage:
    """Of one or more pods."""

    gpus: int = 0
    """Accelerators that pods with a node hold; a MIG device counts as one."""
    waiting_gpus: int = 0
    """Those that pods without a node wait for."""
    cpu: float = 0.0
    """Requested cores of the pods with a node."""
    memory: int = 0
    """Requested bytes of these."""
    used_cpu: float | None = None
    """Cores that they use, of those that are measured; ``None`` where none is."""
    used_memory: int | None = None
    """Bytes."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.gpus + other.gpus,
            self.waiting_gpus + other.waiting_gpus,
            self.cpu + other.cpu,
            self.memory + other.memory,
            _sum(self.used_cpu, other.used_cpu),
            _sum(self.used_memory, other.used_memory),
        )


@dataclass(frozen=True, slots=True)
class JobUsage:
    """A job and its pods."""

    job: JobView
    pods: tuple[tuple[str, Usage], ...] = field(default=(), repr=False)
    """The node of each pod, "" where it has none."""

    @property
    def usage(self) -> Usage:
        return sum((usage for _, usage in self.pods), Usage())


@dataclass(frozen=True, slots=True)
class Accelerators:
    """The accelerators of a cluster."""

    total: int
    jobs: int
    others: int
    """Held by pods that are of no job."""

    @property
    def free(self) -> int:
        return max(0, self.total - self.jobs - self.others)


@dataclass(frozen=True, slots=True)
class Usages:
    """The answer of :meth:`dljob.Client.usage`."""

    items: tuple[JobUsage, ...]
    cluster: Accelerators | None
    """``None`` for one namespace, or where the user may not list nodes."""
    problems: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain data, with camelCase keys."""
        jobs = [
            {"resource": one.job.resource, "namespace": one.job.namespace, "name": one.job.name, **plain(one.usage)}
            for one in self.items
        ]
        cluster = None if self.cluster is None else {**asdict(self.cluster), "free": self.cluster.free}
        return {"jobs": jobs, "gpus": cluster}


def node_of(pod: Resource) -> str:
    """The name of its node; "" where it has none."""
    return str((pod.get("spec") or {}).get("nodeName") or "")


def usage_of(pod: Resource, measured: Mapping[tuple[str, str], tuple[Decimal, Decimal]]) -> Usage:
    """What a pod holds and uses; nothing once it has ended. ``measured`` is that of :func:`measured_by_pod`."""
    spec, meta = pod.get("spec") or {}, pod.get("metadata") or {}
    if (pod.get("status") or {}).get("phase") in ENDED:
        return Usage()
    wanted = pod_requests(spec)
    gpus = round(sum((amount for name, amount in wanted.items() if is_gpu(name)), Decimal(0)))
    if not node_of(pod):
        return Usage(waiting_gpus=gpus)
    used = measured.get((str(meta.get("namespace")), str(meta.get("name"))))
    return Usage(
        gpus=gpus,
        cpu=float(wanted.get("cpu", 0)),
        memory=round(wanted.get("memory", Decimal(0))),
        used_cpu=None if used is None else float(used[0]),
        used_memory=None if used is None else round(used[1]),
    )


def measured_by_pod(metrics: Iterable[Resource]) -> dict[tuple[str, str], tuple[Decimal, Decimal]]:
    """Cores and bytes by namespace and name, from the PodMetrics of metrics.k8s.io."""
    found = {}
    for one in metrics:
        used = [container.get("usage") or {} for container in one.get("containers") or ()]
        cpu, memory = (sum((quantity.parse(each.get(name, 0)) for each in used), Decimal(0)) for name in _MEASURED)
        meta = one.get("metadata") or {}
        found[str(meta.get("namespace")), str(meta.get("name"))] = cpu, memory
    return found


_MEASURED = ("cpu", "memory")


def accelerators(nodes: Iterable[Resource], jobs: Iterable[JobUsage], pods: Iterable[Resource]) -> Accelerators:
    """Of a cluster with these nodes, and all of its pods."""
    total = Decimal(0)
    for node in nodes:
        allocatable = (node.get("status") or {}).get("allocatable") or {}
        total += sum((quantity.parse(amount) for name, amount in allocatable.items() if is_gpu(name)), Decimal(0))
    of_jobs = sum(one.usage.gpus for one in jobs)
    return Accelerators(round(total), of_jobs, max(0, sum(usage_of(pod, {}).gpus for pod in pods) - of_jobs))


GROUPS: Mapping[str, Callable[[JobView], str]] = {
    "namespace": lambda job: job.namespace,
    "user": lambda job: job.user,
    "queue": lambda job: job.queue,
    "kind": lambda job: job.kind,
    "framework": lambda job: job.framework,
    "node": lambda job: "",
}


def grouped(items: Iterable[JobUsage], by: Sequence[str]) -> list[tuple[tuple[str, ...], int, Usage]]:
    """By the values of ``by``, keys of ``GROUPS``: how many jobs with pods, and their usage. Most GPUs come first."""
    jobs: dict[tuple[str, ...], set[str]] = {}
    sums: dict[tuple[str, ...], Usage] = {}
    for one in items:
        for node, usage in one.pods:
            if usage == Usage():
                continue
            group = tuple(node if name == "node" else GROUPS[name](one.job) for name in by)
            jobs.setdefault(group, set()).add(one.job.uid)
            sums[group] = sums.get(group, Usage()) + usage
    found = [(group, len(jobs[group]), usage) for group, usage in sums.items()]
    return sorted(found, key=lambda row: (-row[2].gpus, -row[2].cpu, row[0]))


def plain(usage: Usage) -> dict[str, Any]:
    """With camelCase keys."""
    return {
        "gpus": usage.gpus,
        "waitingGpus": usage.waiting_gpus,
        "cpu": round(usage.cpu, 6),
        "memory": usage.memory,
        "usedCpu": None if usage.used_cpu is None else round(usage.used_cpu, 6),
        "usedMemory": usage.used_memory,
    }


def _sum(first: Any, second: Any) -> Any:
    if first is None:
        return second
    return first if second is None else first + second
