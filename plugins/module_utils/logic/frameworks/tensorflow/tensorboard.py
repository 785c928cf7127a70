"""TensorBoard of a TensorFlow job: a Deployment, a Service and on OpenShift a Route, which outlive the training.

Source: tf-operator, ``spec.tensorboard``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import security_context
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.tensorflow.parameter_server import (
    image_of,
    security_of,
)
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Cluster

FIELD = "tensorboard"
PROGRAM = "tensorboard.py"
"""The role's file with the program that starts TensorBoard in images of any release."""
PORT = 6006
SERVICE_PORT = 80
_PORT_NAME = "tb-port"
_PATH = f"spec.{FIELD}"


def validate(cluster: Cluster) -> Iterator[str]:
    """The errors of ``spec.tensorboard``, one sentence each."""
    requested = cluster["spec"].get(FIELD)
    if requested is None:
        return
    if not isinstance(requested, Mapping):
        yield f"{_PATH} must be a map with logDir"
        return
    log_dir = requested.get("logDir")
    if not (isinstance(log_dir, str) and log_dir):
        yield f"{_PATH}.logDir is missing: name the directory of the event files there"
    for name in ("volumes", "volumeMounts"):
        items = requested.get(name) or []
        if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
            yield f"{_PATH}.{name} must be a list of maps"
    service_type = requested.get("serviceType") or c.SERVICE_TYPES[0]
    if service_type not in c.SERVICE_TYPES:
        yield f"{_PATH}.serviceType: {service_type!r} is none of {', '.join(c.SERVICE_TYPES)}"


def objects(cluster: Cluster) -> Sequence[Mapping[str, Any]]:
    """The objects of the TensorBoard, in the order of creation; empty where the job requests none."""
    requested = cluster["spec"].get(FIELD)
    if requested is None:
        return ()
    return (_deployment(cluster, requested), _service(cluster, requested), _route(cluster))


def _name(cluster: Cluster) -> str:
    return f"tensorboard-{cluster['job']['runtime_id']}"


def _metadata(cluster: Cluster) -> dict[str, Any]:
    return {
        "name": _name(cluster),
        "labels": {"app": "tensorboard"},
        "annotations": {c.ANNOTATION_LIFETIME: c.LIFETIME_JOB},
    }


def _deployment(cluster: Cluster, requested: Mapping[str, Any]) -> Mapping[str, Any]:
    job = cluster["job"]
    selector = {c.LABEL_TENSORBOARD_OF: job["uid"]}
    contexts = security_of(cluster)
    context = security_context.for_container(contexts, image_of(cluster), cluster.get("settings", {}))
    of_pod = security_context.for_pod(contexts)
    container = {
        "name": FIELD,
        "image": image_of(cluster),
        "command": [
            *("python", "-c", cluster["files"][PROGRAM]),
            *("--logdir", requested["logDir"], "--host", "0.0.0.0"),
        ],
        "ports": [{"containerPort": PORT}],
        # TensorBoard takes long to start; the Service must not route to it before
        "readinessProbe": {"httpGet": {"path": "/", "port": PORT}, "timeoutSeconds": 5},
        "volumeMounts": [dict(mount) for mount in requested.get("volumeMounts") or ()],
        **({"securityContext": context} if context else {}),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(cluster),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": {"labels": {"app": "tensorboard", "runtime_id": job["runtime_id"], **selector}},
                "spec": {
                    "containers": [container],
                    "volumes": [dict(volume) for volume in requested.get("volumes") or ()],
                    "enableServiceLinks": False,
                    # without one the Deployment stays as earlier releases have made it
                    **({"securityContext": of_pod} if of_pod else {}),
                },
            },
        },
    }


def _service(cluster: Cluster, requested: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(cluster),
        "spec": {
            "type": requested.get("serviceType") or c.SERVICE_TYPES[0],
            "selector": {c.LABEL_TENSORBOARD_OF: cluster["job"]["uid"]},
            "ports": [{"name": _PORT_NAME, "port": SERVICE_PORT, "targetPort": PORT}],
        },
    }


def _route(cluster: Cluster) -> Mapping[str, Any]:
    """TLS terminates at the router."""
    return {
        "apiVersion": c.ROUTE_API_VERSION,
        "kind": "Route",
        "metadata": _metadata(cluster),
        "spec": {
            "to": {"kind": "Service", "name": _name(cluster)},
            "port": {"targetPort": _PORT_NAME},
            "tls": {"termination": "edge", "insecureEdgeTerminationPolicy": "Redirect"},
        },
    }
