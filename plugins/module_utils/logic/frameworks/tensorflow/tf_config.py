"""TF_CONFIG, from which every TensorFlow process reads the whole cluster and its own type and index.

Sources: tf-operator, and training-operator's v1 TFJob. Both marshal it from a Go map: types in lower case and sorted,
no blanks, ``environment`` last.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.memoize import MemoizedPerCluster

ELASTIC_FIELD = "enableDynamicWorker"
"""The field of a v1 job's spec that makes its workers elastic."""


def tf_config(cluster: Mapping[str, Any]) -> str:
    """TF_CONFIG for the task: ``{"cluster":{"ps":["host:port"]},"task":{...},"environment":"cloud"}``."""
    if cluster["spec"].get(ELASTIC_FIELD) is True:
        return _sparse(cluster)
    task = {"type": cluster["task"]["type"].lower(), "index": cluster["task"]["index"]}
    members = _members_json(cluster["replicas"], _domain(cluster))
    return f'{{"cluster":{members},"task":{_json(task)},"environment":"cloud"}}'


def _domain(cluster: Mapping[str, Any]) -> str:
    """v1 writes names with the namespace, the operators before it names without one."""
    return str(cluster.get("service_domain", "")) if cluster["job"].get("form") == "v1" else ""


@MemoizedPerCluster
def _members_json(replicas: Mapping[str, Any], domain: str) -> str:
    members = {type_.lower(): found for type_, found in replicas.items()}
    return _json({type_: [_address(m, domain) for m in found] for type_, found in sorted(members.items())})


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _sparse(cluster: Mapping[str, Any]) -> str:
    """v1's format for elastic workers: a worker gets its own address and those of the parameter servers only.

    An absent type is an empty list (training-operator wrote null for a worker without parameter servers, which
    TensorFlow rejects).
    """
    task, domain = cluster["task"], _domain(cluster)
    type_, index = task["type"], task["index"]
    own = _address(cluster["replicas"][type_][index], domain)
    config = {
        "cluster": {
            "worker": {str(index): own} if type_ == "Worker" else {},
            "ps": [own]
            if type_ == "PS"
            else [_address(m, domain) for m in cluster["replicas"].get("PS", ())]
            if type_ == "Worker"
            else [],
        },
        "task": {"type": type_.lower(), "index": index},
    }
    return json.dumps(config, separators=(",", ":"))


def _address(member: Mapping[str, Any], domain: str) -> str:
    return f"{member['host']}{domain}:{member['port']}"


def tensorflow_environment(cluster: Mapping[str, Any]) -> dict[str, str]:
    """The environment of a TensorFlow process. In v1 the only process of a job gets no TF_CONFIG, like in
    training-operator: TensorFlow would otherwise treat it as a cluster."""
    if cluster["job"].get("form") == "v1" and cluster["total"] == 1:
        return {}
    return {"TF_CONFIG": tf_config(cluster)}
