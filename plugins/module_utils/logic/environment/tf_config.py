"""TF_CONFIG, the variable in which every TensorFlow process reads the whole cluster and its own place in it.

Sources: seed 003 and the operator that it describes, and the training operator's v1 TFJob. Both wrote it from a Go map:
types in lower case and sorted, no blanks, ``environment`` last.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.environment.once import OncePerCluster


def tf_config(cluster: Mapping[str, Any]) -> str:
    """TF_CONFIG's text for the task: ``{"cluster":{"ps":["host:port"]},"task":{...},"environment":"cloud"}``."""
    task = {"type": cluster["task"]["type"].lower(), "index": cluster["task"]["index"]}
    return f'{{"cluster":{_members_json(cluster["replicas"])},"task":{_json(task)},"environment":"cloud"}}'


@OncePerCluster
def _members_json(replicas: Mapping[str, Any]) -> str:
    members = {type_.lower(): found for type_, found in replicas.items()}
    return _json({type_: [f"{m['host']}:{m['port']}" for m in found] for type_, found in sorted(members.items())})


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def tf_config_environment(cluster: Mapping[str, Any]) -> dict[str, str]:
    """What a TensorFlow process reads. In v1's form a job of a single process gets nothing, as it always was there:
    TensorFlow would otherwise take it for a cluster."""
    if cluster["job"].get("form") == "v1" and cluster["total"] == 1:
        return {}
    return {"TF_CONFIG": tf_config(cluster)}
