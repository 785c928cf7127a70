"""The variables of XGBoost: the address of the master's tracker, the own rank, and LightGBM's list of workers.

Source: training-operator's v1 XGBoostJob (1.9), which sets them in every container of a pod, in this order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.memoize import MemoizedPerCluster

MASTER, WORKER = "Master", "Worker"


def xgboost_environment(cluster: Mapping[str, Any]) -> dict[str, str]:
    """The environment of the task's process. A master without workers gets no list of workers."""
    replicas, total = cluster["replicas"], cluster["total"]
    master = replicas[MASTER][0]
    variables = {
        "MASTER_PORT": str(master["port"]),
        "MASTER_ADDR": master["host"],
        "WORLD_SIZE": str(total),
        "RANK": str(cluster["task"]["rank"]),
        "PYTHONUNBUFFERED": "1",
    }
    if total == 1:
        return variables
    return {**variables, "WORKER_PORT": str(replicas[WORKER][0]["port"]), "WORKER_ADDRS": _worker_names(replicas)}


@MemoizedPerCluster
def _worker_names(replicas: Mapping[str, Any]) -> str:
    return ",".join(worker["host"] for worker in replicas[WORKER])
