"""The environment of a Caffe2 worker, and the validation of the workers' rendezvous.

Source: caffe2-operator. Caffe2 has no parameter server: the workers discover one another through a Redis server or a
shared directory, and then exchange gradients directly (Gloo).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

REDIS, NFS, NONE = "redis", "nfs", "none"
BACKENDS = (REDIS, NFS, NONE)
REDIS_PORT = 6379
"""Redis' default port, used where the job has none."""

_FIELD = "backendSpecs"


def backend_of(cluster: Mapping[str, Any]) -> str:
    """The rendezvous of the workers of ``cluster``: the job's backendType; by default redis, or none for one worker."""
    return str(_given(cluster).get("backendType") or (REDIS if cluster["total"] > 1 else NONE))


def caffe2_validation(cluster: Mapping[str, Any]) -> Iterator[str]:
    """The errors of ``spec.backendSpecs``, one sentence each."""
    path = f"spec.{_FIELD}"
    specs = cluster["spec"].get(_FIELD)
    if specs is not None and not isinstance(specs, Mapping):
        yield f"{path} must be a map with backendType and the fields of that backend"
        return
    given, backend = _given(cluster), backend_of(cluster)
    if backend not in BACKENDS:
        yield f"{path}.backendType: {backend!r} is none of {', '.join(BACKENDS)}"
    elif backend == NONE and cluster["total"] > 1:
        yield (
            f"{path}.backendType is none, and the job has {cluster['total']} replicas, which need a rendezvous: "
            "choose redis or nfs, or 1 replica"
        )
    elif backend == REDIS:
        if not _is_text(given.get("redisHost")):
            yield (
                f"{path}.redisHost is missing: name the Redis server for the replicas' rendezvous, "
                "or choose backendType nfs (or, for 1 replica, none)"
            )
        port = given.get("redisPort", REDIS_PORT)
        if isinstance(port, bool) or not isinstance(port, int) or not 1 <= port <= 65535:
            yield f"{path}.redisPort is {port!r}: it must be a whole number between 1 and 65535"
    elif backend == NFS and not _is_text(given.get("nfsPath")):
        yield f"{path}.nfsPath is missing: name the directory, mounted in all replicas, for their rendezvous"


def caffe2_config(cluster: Mapping[str, Any]) -> str:
    """CAFFE2_CONFIG: the cluster as JSON, ``host:port`` by type in lower case, and the replica's own type and index."""
    task = cluster["task"]
    config = {
        "cluster": {
            type_.lower(): [f"{m['host']}:{m['port']}" for m in members]
            for type_, members in sorted(cluster["replicas"].items())
        },
        "task": {"type": task["type"].lower(), "index": task["index"]},
    }
    return json.dumps(config, separators=(",", ":"))


def caffe2_environment(cluster: Mapping[str, Any]) -> dict[str, str]:
    """SHARD_ID, NUM_SHARDS, RUN_ID, CAFFE2_CONFIG, REDIS_HOST, REDIS_PORT and NFS_PATH of ``cluster``'s task.

    All of them are always set, so that a command line may refer to each. Those of a backend that the job does not use
    are empty; only the port, which programs parse as a number, has Redis' default.
    """
    given, backend = _given(cluster), backend_of(cluster)
    redis = given if backend == REDIS else {}
    nfs = given if backend == NFS else {}
    return {
        "SHARD_ID": str(cluster["task"]["index"]),
        "NUM_SHARDS": str(cluster["total"]),
        "RUN_ID": _run_id(cluster),
        "CAFFE2_CONFIG": caffe2_config(cluster),
        "REDIS_HOST": str(redis.get("redisHost", "")),
        "REDIS_PORT": str(redis.get("redisPort", REDIS_PORT)),
        "NFS_PATH": str(nfs.get("nfsPath", "")),
    }


def _run_id(cluster: Mapping[str, Any]) -> str:
    """The key of the rendezvous. It differs by attempt, so that data of an earlier attempt has no effect."""
    runtime_id, attempt = cluster["job"]["runtime_id"], cluster.get("attempt", 0)
    return f"{runtime_id}-{attempt}" if attempt else str(runtime_id)


def _given(cluster: Mapping[str, Any]) -> Mapping[str, Any]:
    """The job's ``backendSpecs`` without empty fields."""
    specs = cluster["spec"].get(_FIELD)
    return {k: v for k, v in specs.items() if v not in (None, "")} if isinstance(specs, Mapping) else {}


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""
