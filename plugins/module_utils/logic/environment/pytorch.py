"""The variables that PyTorch's processes meet by: those of ``init_process_group``, and torchrun's own (``PET_*``).

Source: the training operator's v1 PyTorchJob (1.8), which gives them to every container of a pod; torchrun reads each
of its arguments from the variable ``PET_<ARGUMENT>``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MASTER, WORKER = "Master", "Worker"
AUTO = "auto"
"""As many processes in a pod as torchrun finds accelerators for, or else processors."""
BACKEND = "c10d"
_PROCESSES = re.compile(r"[a-z][a-z0-9_]*|[1-9][0-9]{0,3}")


def pytorch_validation(cluster: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with ``spec.nprocPerNode`` and ``spec.elasticPolicy``, a sentence each."""
    spec = cluster["spec"]
    processes, policy = spec.get("nprocPerNode"), spec.get("elasticPolicy")
    if processes is not None and not (isinstance(processes, str) and _PROCESSES.fullmatch(processes)):
        yield f"spec.nprocPerNode is {processes!r}: it must be auto, cpu, gpu or a number in quotes"
    if policy is None:
        return
    path = "spec.elasticPolicy"
    if not isinstance(policy, Mapping):
        yield f"{path} must be a map with minReplicas, maxReplicas and how torchrun's processes meet"
        return
    workers = len(cluster["replicas"].get(WORKER) or ())
    if not workers:
        yield f"{path} is about workers, of which the job has none: add Worker, or remove elasticPolicy"
    if processes is not None and policy.get("nProcPerNode") is not None:
        yield f"spec.nprocPerNode and {path}.nProcPerNode are one setting: keep nprocPerNode, remove the other"
    if policy.get("metrics"):
        yield f"{path}.metrics makes no autoscaler here: remove it, and write a HorizontalPodAutoscaler"
    counts = {name: policy.get(name) for name in ("minReplicas", "maxReplicas", "nProcPerNode")}
    wrong = {name: given for name, given in counts.items() if given is not None and not _is_count(given)}
    for name, given in wrong.items():
        yield f"{path}.{name} is {given!r}: it must be a whole number of at least 1"
    if wrong:
        return
    least, most = counts["minReplicas"], counts["maxReplicas"]
    if least is not None and most is not None and least > most:
        yield f"{path}.minReplicas is {least}, and maxReplicas {most}: lower it, or raise maxReplicas"
    elif most is not None and workers > most:
        yield f"the job has {workers} workers, and {path}.maxReplicas is {most}: torchrun would let none in beyond it"


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def pytorch_environment(cluster: Mapping[str, Any]) -> dict[str, str]:
    """What the task's process reads: where the master is, its own rank, and how many there are of what."""
    spec = cluster["spec"]
    elastic = spec.get("elasticPolicy")
    processes = str(spec.get("nprocPerNode") or (elastic or {}).get("nProcPerNode") or AUTO)
    variables = {"PYTHONUNBUFFERED": "1", **_master(cluster), "PET_NPROC_PER_NODE": processes}
    if elastic is None:
        return {**variables, "PET_NNODES": str(cluster["total"])}
    return {**variables, **_elastic(cluster["replicas"].get(WORKER) or [], elastic)}


def _master(cluster: Mapping[str, Any]) -> dict[str, str]:
    """Of a job without a master nothing: its workers meet at an address that elasticPolicy gives, or their program."""
    masters = cluster["replicas"].get(MASTER)
    if not masters:
        return {}
    host, port, rank = masters[0]["host"], str(masters[0]["port"]), str(cluster["task"]["rank"])
    # of auto, cpu and gpu only the pod itself can tell the number: torchrun sets the processes' own WORLD_SIZE then
    given = str(cluster["spec"].get("nprocPerNode") or "")
    each = int(given) if given.isdecimal() else 1
    return {
        "MASTER_ADDR": host,
        "MASTER_PORT": port,
        "PET_MASTER_ADDR": host,
        "PET_MASTER_PORT": port,
        "WORLD_SIZE": str(cluster["total"] * each),
        "RANK": rank,
        "PET_NODE_RANK": rank,
    }


def _elastic(workers: Sequence[Mapping[str, Any]], policy: Mapping[str, Any]) -> dict[str, str]:
    """Where workers that come and go meet, and between which numbers of them they go on."""
    least = policy.get("minReplicas", policy.get("maxReplicas", len(workers)))
    most = policy.get("maxReplicas", policy.get("minReplicas", len(workers)))
    host = policy.get("rdzvHost") or workers[0]["host"]
    port = policy.get("rdzvPort") or workers[0]["port"]
    details = ",".join(f"{one.get('key', '')}={one.get('value', '')}" for one in policy.get("rdzvConf") or ())
    given = {
        "PET_RDZV_ENDPOINT": f"{host}:{port}",
        "PET_RDZV_BACKEND": policy.get("rdzvBackend") or BACKEND,
        # a pod that trains for itself would else wait at its own rendezvous for the others
        "PET_NNODES": "1:1" if policy.get("standalone") else f"{least}:{most}",
        "PET_MAX_RESTARTS": policy.get("maxRestarts"),
        "PET_RDZV_ID": policy.get("rdzvId"),
        "PET_RDZV_CONF": details or None,
        # the peer writes "", of which torchrun makes no number and ends
        "PET_STANDALONE": 1 if policy.get("standalone") else None,
    }
    return {name: str(value) for name, value in given.items() if value is not None}
