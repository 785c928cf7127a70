"""TF_CONFIG, the variable in which every TensorFlow process reads the whole cluster and its own place in it.

Sources: seed 003 and the operator that it describes, and the training operator's v1 TFJob. Both wrote it from a Go map:
types in lower case and sorted, no blanks, ``environment`` last.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.environment.memoize import MemoizedPerCluster

DYNAMIC = "enableDynamicWorker"
"""The field of a v1 job's spec that lets workers come and go."""


def tf_config(cluster: Mapping[str, Any]) -> str:
    """TF_CONFIG's text for the task: ``{"cluster":{"ps":["host:port"]},"task":{...},"environment":"cloud"}``."""
    if cluster["spec"].get(DYNAMIC) is True:
        return _sparse(cluster)
    task = {"type": cluster["task"]["type"].lower(), "index": cluster["task"]["index"]}
    return f'{{"cluster":{_members_json(cluster["replicas"])},"task":{_json(task)},"environment":"cloud"}}'


@MemoizedPerCluster
def _members_json(replicas: Mapping[str, Any]) -> str:
    members = {type_.lower(): found for type_, found in replicas.items()}
    return _json({type_: [_address(m) for m in found] for type_, found in sorted(members.items())})


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _sparse(cluster: Mapping[str, Any]) -> str:
    """v1's form for workers that come and go: each knows itself and the parameter servers, nobody else knows it.

    Where there is nobody to name the list is empty (v1 wrote null for a worker without parameter servers, which
    TensorFlow refuses).
    """
    task = cluster["task"]
    type_, index = task["type"], task["index"]
    own = _address(cluster["replicas"][type_][index])
    config = {
        "cluster": {
            "worker": {str(index): own} if type_ == "Worker" else {},
            "ps": [own]
            if type_ == "PS"
            else [_address(m) for m in cluster["replicas"].get("PS", ())]
            if type_ == "Worker"
            else [],
        },
        "task": {"type": type_.lower(), "index": index},
    }
    return json.dumps(config, separators=(",", ":"))


def _address(member: Mapping[str, Any]) -> str:
    return f"{member['host']}:{member['port']}"


def tensorflow_environment(cluster: Mapping[str, Any]) -> dict[str, str]:
    """What a TensorFlow process reads. In v1's form a job of a single process gets nothing, as it always was there:
    TensorFlow would otherwise take it for a cluster."""
    if cluster["job"].get("form") == "v1" and cluster["total"] == 1:
        return {}
    return {"TF_CONFIG": tf_config(cluster)}
