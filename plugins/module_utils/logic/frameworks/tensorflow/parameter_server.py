"""The default parameter server of TensorFlow's v1alpha1 jobs: a gRPC server that only the role's program needs.

Source: tf-operator. It runs in parameter servers without a container named tensorflow, and in those with
``IsDefaultPS: true``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import security_context
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import (
    own_template,
    template_of,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Cluster

TYPE = "PS"
CONTAINER = "tensorflow"
FLAG = "IsDefaultPS"
"""The field of a replica spec that requests the program even where the template has the container."""
IMAGE_FIELD = "tfImage"
IMAGE = "tensorflow/tensorflow:1.3.0"
"""The image where the job has no ``tfImage``."""
PROGRAM = "parameter_server.py"
"""The role's file with the program."""
FILE = "grpc_tensorflow_server.py"
"""The program's name in the pod, and its key in the ConfigMap."""
VOLUME = "ps-config-volume"
FOLDER = "/ps-server"


def runs_in(cluster: Cluster, type_: str) -> bool:
    """Whether the replicas of ``type_`` run the program."""
    if type_ != TYPE or type_ not in cluster["templates"] or cluster["job"]["form"] == "v1":
        return False
    template = cluster["templates"][type_]
    return template["fields"].get(FLAG) is True or CONTAINER not in template["containers"]


def pod_defaults(cluster: Cluster) -> Mapping[str, Any]:
    """The defaults of the template of the replica ``cluster["task"]``; empty where it runs the job's own program."""
    task = cluster["task"]
    if not runs_in(cluster, task["type"]):
        return {}
    command = [
        "python",
        f"{FOLDER}/{FILE}",
        f"--cluster_spec={_cluster_spec(cluster['replicas'])}",
        f"--job_name={task['type'].lower()}",
        f"--task_id={task['index']}",
    ]
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": image_of(cluster),
        "command": command,
        "volumeMounts": [{"name": VOLUME, "mountPath": FOLDER}],
    }
    volume = {"name": VOLUME, "configMap": {"name": _config_map_name(cluster)}}
    spec: dict[str, Any] = {"containers": [container], "volumes": [volume]}
    own = own_template(cluster)
    if CONTAINER in own["containers"]:
        return {"spec": spec}
    contexts = own.get("security", {})
    if not own["containers"]:  # then the template says nothing of them, and the job's others count
        contexts = {**security_of(cluster), **({"pod": contexts["pod"]} if contexts else {})}
        if pod := security_context.for_pod(contexts):
            spec["securityContext"] = pod
    if context := security_context.for_container(contexts, container["image"], cluster.get("settings", {})):
        container["securityContext"] = context
    return {"spec": spec}


def security_of(cluster: Cluster) -> security_context.Contexts:
    """The security contexts of the job: those of the first replica type whose replicas run its own program."""
    own = (one for one, replicas in cluster["replicas"].items() if replicas and not runs_in(cluster, one))
    return next((template_of(cluster, one, 0).get("security", {}) for one in own), {})


def config_map(cluster: Cluster) -> Sequence[Mapping[str, Any]]:
    """The ConfigMap with the program, where a replica runs it."""
    if not any(runs_in(cluster, type_) for type_ in cluster["replicas"]):
        return ()
    return (
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": _config_map_name(cluster)},
            "data": {FILE: cluster["files"][PROGRAM]},
            "immutable": True,  # a new release must not change the program below running pods
        },
    )


def image_of(cluster: Cluster) -> str:
    """The image of the default programs: the job's tfImage, or the original operator's."""
    return str(cluster["spec"].get(IMAGE_FIELD) or IMAGE)


def _config_map_name(cluster: Cluster) -> str:
    return f"cm-ps-{cluster['job']['runtime_id']}"


def _cluster_spec(replicas: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """The whole cluster as the program's argument: ``master|host:port,ps|host:port;host:port``."""
    jobs = sorted((type_.lower(), members) for type_, members in replicas.items() if members)
    return ",".join(f"{type_}|" + ";".join(f"{m['host']}:{m['port']}" for m in members) for type_, members in jobs)
