"""The variables for the rendezvous of PyTorch's processes: those of ``init_process_group`` and torchrun's (``PET_*``).

Source: training-operator's v1 PyTorchJob (1.8), which sets them in every container of a pod; torchrun reads each of its
arguments from the variable ``PET_<ARGUMENT>``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import own_template

MASTER, WORKER = "Master", "Worker"
AUTO = "auto"
"""torchrun starts one process per accelerator of the pod, or else one per processor of the node."""
BACKEND = "c10d"
CONTAINER = "pytorch"
"""The container that runs torchrun."""
MAX_RESTARTS = 10
"""How often the agents of elastic workers restart their processes, if the job does not say.

torchrun's own default is 0, with which the loss of a worker ends all others. A program that always fails ends within
some minutes, since each restart waits up to 30 s for further workers.
"""
_PROCESSES = re.compile(r"[a-z][a-z0-9_]*|[1-9][0-9]{0,3}")


def pytorch_validation(cluster: Mapping[str, Any]) -> Iterator[str]:
    """The errors of ``spec.nprocPerNode`` and ``spec.elasticPolicy``, one sentence each."""
    spec = cluster["spec"]
    processes, policy = spec.get("nprocPerNode"), spec.get("elasticPolicy")
    if processes is not None and not (isinstance(processes, str) and _PROCESSES.fullmatch(processes)):
        yield f"spec.nprocPerNode is {processes!r}: it must be auto, cpu, gpu or a number in quotes"
    if policy is None:
        return
    path = "spec.elasticPolicy"
    if not isinstance(policy, Mapping):
        yield f"{path} must be a map with minReplicas, maxReplicas and the rendezvous of torchrun"
        return
    workers = len(cluster["replicas"].get(WORKER) or ())
    if not workers:
        yield f"{path} needs workers, of which the job has none: add Worker, or remove elasticPolicy"
    if processes is not None and policy.get("nProcPerNode") is not None:
        yield f"spec.nprocPerNode and {path}.nProcPerNode are one setting: keep nprocPerNode, remove the other"
    counts = {name: policy.get(name) for name in ("minReplicas", "maxReplicas", "nProcPerNode")}
    wrong = {name: given for name, given in counts.items() if given is not None and not _is_count(given)}
    for name, given in wrong.items():
        yield f"{path}.{name} is {given!r}: it must be a whole number of at least 1"
    if not _is_list_of_maps(policy.get("rdzvConf")):
        yield f"{path}.rdzvConf must be a list of maps with key and value"
    if wrong:
        return
    least, most = counts["minReplicas"], counts["maxReplicas"]
    if least is not None and most is not None and least > most:
        yield f"{path}.minReplicas is {least}, and maxReplicas {most}: lower it, or raise maxReplicas"
    elif most is not None and workers > most:
        yield f"the job has {workers} workers, and {path}.maxReplicas is {most}: remove workers, or raise maxReplicas"


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_list_of_maps(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(one, Mapping) for one in value))


def pytorch_environment(cluster: Mapping[str, Any]) -> dict[str, str]:
    """The environment of the task's process: the master's address, its own rank, and the numbers of processes."""
    spec = cluster["spec"]
    elastic = spec.get("elasticPolicy")
    variables = {"PYTHONUNBUFFERED": "1", **_master(cluster), "PET_NPROC_PER_NODE": _processes(cluster)}
    if elastic is None:
        return {**variables, "PET_NNODES": str(cluster["total"])}
    return {**variables, **_elastic(cluster["replicas"].get(WORKER) or [], elastic)}


def _processes(cluster: Mapping[str, Any]) -> str:
    """The processes that torchrun starts in the task's pod.

    For ``auto`` they are those of the CPU limit: torchrun would count the node's processors (2.9.1), or those of the
    affinity (2.15.0), but looks at no quota. Without a limit, or with a device, torchrun counts.
    """
    spec = cluster["spec"]
    given = spec.get("nprocPerNode") or (spec.get("elasticPolicy") or {}).get("nProcPerNode") or AUTO
    if given != AUTO or cluster["task"]["type"] not in (cluster.get("templates") or {}):
        return str(given)
    return str(own_template(cluster).get("processors", {}).get(CONTAINER, AUTO))


def _master(cluster: Mapping[str, Any]) -> dict[str, str]:
    """The master's variables. They are empty without a master: elasticPolicy or the program has the address then."""
    masters = cluster["replicas"].get(MASTER)
    if not masters:
        return {}
    host, port, rank = masters[0]["host"], str(masters[0]["port"]), str(cluster["task"]["rank"])
    # for auto, cpu and gpu only the pod knows the number; torchrun then sets the WORLD_SIZE of its processes
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


def worker_bounds(replicas: Mapping[str, Sequence[Any]], policy: Mapping[str, Any]) -> tuple[int, int]:
    """The least and the largest number of workers under the elasticPolicy ``policy``, each the default of the other."""
    workers = len(replicas.get(WORKER) or ())
    given = {name: policy[name] for name in ("minReplicas", "maxReplicas") if policy.get(name) is not None}
    least = given.get("minReplicas", given.get("maxReplicas", workers))
    most = given.get("maxReplicas", given.get("minReplicas", workers))
    return least, most


def _elastic(workers: Sequence[Mapping[str, Any]], policy: Mapping[str, Any]) -> dict[str, str]:
    """The rendezvous of elastic workers, with their least and largest number."""
    least, most = worker_bounds({WORKER: workers}, policy)
    host = policy.get("rdzvHost") or workers[0]["host"]
    port = policy.get("rdzvPort") or workers[0]["port"]
    details = ",".join(f"{one.get('key', '')}={one.get('value', '')}" for one in policy.get("rdzvConf") or ())
    standalone = bool(policy.get("standalone"))
    restarts = policy.get("maxRestarts")
    given = {
        "PET_RDZV_ENDPOINT": f"{host}:{port}",
        "PET_RDZV_BACKEND": policy.get("rdzvBackend") or BACKEND,
        # a standalone pod would otherwise wait for the others at its own rendezvous
        "PET_NNODES": "1:1" if standalone else f"{least}:{most}",
        "PET_MAX_RESTARTS": MAX_RESTARTS if restarts is None and not standalone else restarts,
        "PET_RDZV_ID": policy.get("rdzvId"),
        "PET_RDZV_CONF": details or None,
        # training-operator sets "", which torchrun cannot parse as a number, so that it exits
        "PET_STANDALONE": 1 if standalone else None,
        # From 2.6 on a worker that joins later finds no address of the shared store: DistStoreError after 60 s, which
        # ends the others too. In 2.5, where the variable begins, the first worker by address must not change. Without a
        # shared store, as up to 2.4, both work.
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": None if standalone else 1,
    }
    return {name: str(value) for name, value in given.items() if value is not None}
