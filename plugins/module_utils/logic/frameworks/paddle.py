"""The arguments of PaddlePaddle's launcher (``python -m paddle.distributed.launch``) as the variables that it reads.

Source: training-operator's v1 PaddleJob (1.9), which sets them in every container of a pod, in this order. Here a job
of workers only has also the rank of each launcher: otherwise PaddlePaddle 3 sorts random names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MASTER, WORKER = "Master", "Worker"
POD_IP = "POD_IP_DUMMY"


def paddle_environment(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """The environment of the task's launcher. With masters, which are parameter servers, it has the pod's part too."""
    replicas, task = cluster["replicas"], cluster["task"]
    has_masters = bool(replicas.get(MASTER))
    variables = {
        "PYTHONUNBUFFERED": "1",
        "PADDLE_JOB_ID": cluster["job"]["name"],
        "PADDLE_NNODES": str(cluster["total"]),
        **_meeting_point(replicas[MASTER if has_masters else WORKER][0], task["rank"]),
    }
    return {**variables, **(_part(task["type"]) if has_masters else {"PADDLE_RANK": str(task["rank"])})}


def _meeting_point(first: Mapping[str, Any], rank: int) -> dict[str, Any]:
    """The address at which the launchers meet. The one with rank 0 serves it, and recognizes it by its own IP only."""
    if rank:
        return {"PADDLE_MASTER": f"{first['host']}:{first['port']}"}
    return {
        POD_IP: {"fieldRef": {"fieldPath": "status.podIP"}},
        "PADDLE_MASTER": f"$({POD_IP}):{first['port']}",
    }


def _part(type_: str) -> dict[str, str]:
    """How many servers and trainers the pod runs. training-operator leaves out the one that is 0."""
    servers = int(type_ == MASTER)
    return {"PADDLE_SERVER_NUM": str(servers), "PADDLE_TRAINER_NUM": str(1 - servers)}
