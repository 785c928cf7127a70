"""The environment of MXNet's parameter server (ps-lite).

Sources: mx-operator (DMLC_* for every replica type), and training-operator's v1 MXJob, which adds MX_CONFIG and, for
workers, DMLC_WORKER_ID.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.memoize import MemoizedPerCluster

HEARTBEATS = {"PS_HEARTBEAT_INTERVAL": "1", "PS_HEARTBEAT_TIMEOUT": "2"}
"""Seconds between the signs of life of a process, and after the last one until the scheduler counts it as dead.

Without them, ps-lite's default, the scheduler of MXNet 1.9.1 never takes the replacement of a lost worker, and both the
replacement and the others wait for ever. With them it does, if the replacement registers once the old one is dead: up
to 3 s after its end. A new pod needs longer, since the operator waits 1 s and ``import mxnet`` takes more than that.
"""
TUNER_SERVER_KEY = "tuner-server-key"
"""The template annotation whose value v1 passes to all replicas in MX_CONFIG's labels."""


def dmlc_environment(cluster: Mapping[str, Any]) -> dict[str, str]:
    """DMLC_ROLE, _PS_ROOT_URI, _PS_ROOT_PORT, _NUM_SERVER, _NUM_WORKER and _USE_KUBERNETES of ``cluster``'s task, and
    the :data:`HEARTBEATS`.

    A local job has no scheduler, so it gets none of them: with them MXNet would wait for a scheduler.
    """
    replicas, task = cluster["replicas"], cluster["task"]
    schedulers = replicas.get("Scheduler") or []
    if not schedulers:
        return {}
    return {
        "DMLC_ROLE": task["type"].lower(),
        "DMLC_PS_ROOT_URI": schedulers[0]["host"],
        "DMLC_PS_ROOT_PORT": str(schedulers[0]["port"]),
        "DMLC_NUM_SERVER": str(len(replicas.get("Server") or [])),
        "DMLC_NUM_WORKER": str(len(replicas.get("Worker") or [])),
        "DMLC_USE_KUBERNETES": "1",
        **HEARTBEATS,
    }


def mx_config(cluster: Mapping[str, Any]) -> str:
    """MX_CONFIG: the whole cluster as JSON, one ``{"url", "port"}`` per replica, types in lower case and sorted."""
    labels = {
        type_.lower(): template["annotations"].get(TUNER_SERVER_KEY, "")
        for type_, template in sorted(cluster["templates"].items())
    }
    task = {"type": cluster["task"]["type"].lower(), "index": cluster["task"]["index"]}
    return f'{{"cluster":{_members_json(cluster["replicas"])},"labels":{_json(labels)},"task":{_json(task)}}}'


@MemoizedPerCluster
def _members_json(replicas: Mapping[str, Any]) -> str:
    return _json(
        {
            type_.lower(): [{"url": m["host"], "port": m["port"]} for m in members]
            for type_, members in sorted(replicas.items())
        }
    )


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def mxnet_environment(cluster: Mapping[str, Any]) -> dict[str, str]:
    """The environment of an MXJob's process: DMLC_* and PS_*; in v1 also MX_CONFIG and DMLC_WORKER_ID (BytePS)."""
    task = cluster["task"]
    if cluster["job"].get("form") != "v1":
        return dmlc_environment(cluster)
    environment = {"MX_CONFIG": mx_config(cluster), **dmlc_environment(cluster)}
    if task["type"] == "Worker":
        environment["DMLC_WORKER_ID"] = str(task["index"])
    return environment
