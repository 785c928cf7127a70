"""A job's TensorBoard: a Deployment and a Service that outlive the training.

Each has a hash of its spec in an annotation: the operator creates a missing object again, replaces one of another
``spec.tensorboard``, and deletes both when the job no longer requests a TensorBoard.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic import auxiliary_objects
from ansible_collections.dljob.operator.plugins.module_utils.logic.placeholders import fill
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework, TensorBoardSpec
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, TensorBoard
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Deletion, Observed

SERVICE_PORT = 80
_PORT_NAME = "tb-port"
_API_VERSIONS = {"Deployment": "apps/v1", "Service": "v1"}


def parse(options: Mapping[str, Any], framework: Framework, errors: list[str]) -> TensorBoard | None:
    """The TensorBoard that the spec requests, ``None`` where it requests none; appends to ``errors``."""
    declared = framework.tensorboard
    requested = options.get(declared.spec_field) if declared else None
    if declared is None or requested is None:
        return None
    path = f"spec.{declared.spec_field}"
    if not isinstance(requested, Mapping):
        errors.append(f"{path} must be a map with logDir")
        return None
    log_dir = requested.get("logDir")
    if not (isinstance(log_dir, str) and log_dir):
        errors.append(f"{path}.logDir is missing: name the directory of the event files there")
        return None
    for name in ("volumes", "volumeMounts"):
        items = requested.get(name) or []
        if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
            errors.append(f"{path}.{name} must be a list of maps")
            return None
    service_type = requested.get("serviceType") or c.SERVICE_TYPES[0]
    if service_type not in c.SERVICE_TYPES:
        errors.append(f"{path}.serviceType: {service_type!r} is none of {', '.join(c.SERVICE_TYPES)}")
    return TensorBoard(
        log_dir=log_dir,
        image=str(options.get(declared.image_field) or declared.image),
        service_type=str(service_type),
        volumes=tuple(requested.get("volumes") or ()),
        volume_mounts=tuple(requested.get("volumeMounts") or ()),
    )


def names(job: DLJob, framework: Framework) -> tuple[str, ...]:
    """The names of the TensorBoard's Services; empty where the job has no TensorBoard."""
    return (_name(job, framework.tensorboard),) if job.tensorboard and framework.tensorboard else ()


def build(job: DLJob, framework: Framework) -> tuple[dict[str, Any], ...]:
    """The objects of the TensorBoard in the order of creation; empty where the job has none."""
    if not (job.tensorboard and framework.tensorboard):
        return ()
    manifests = (
        _deployment(job, job.tensorboard, framework.tensorboard),
        _service(job, job.tensorboard, framework.tensorboard),
    )
    for manifest in manifests:
        text = json.dumps(manifest["spec"], sort_keys=True, default=str)
        manifest["metadata"]["annotations"] = {c.ANNOTATION_SPEC_HASH: hashlib.sha256(text.encode()).hexdigest()[:16]}
    return manifests


def due(job: DLJob, framework: Framework, observed: Observed) -> tuple[Mapping[str, Any], ...]:
    """The objects of the TensorBoard that are missing or have another spec."""

    def is_current(manifest: Mapping[str, Any]) -> bool:
        metadata = manifest["metadata"]
        present = observed.owned_objects.get((manifest["kind"], metadata["name"]))
        return present is not None and present.hash == metadata["annotations"][c.ANNOTATION_SPEC_HASH]

    return tuple(manifest for manifest in build(job, framework) if not is_current(manifest))


def surplus(job: DLJob, framework: Framework, observed: Observed) -> tuple[Deletion, ...]:
    """The objects of a TensorBoard that the job no longer requests, or requests under another name."""
    if framework.tensorboard is None:
        return ()
    wanted, own = names(job, framework), _name(job, framework.tensorboard)
    return tuple(
        Deletion(kind, name, present.uid, _API_VERSIONS[kind])
        for (kind, name), present in observed.owned_objects.items()
        # of the job's Services only TensorBoard's has a hash, or (from an earlier release) this name
        if name not in wanted and (kind == "Deployment" or (kind == "Service" and (present.hash or name == own)))
    )


def route(job: DLJob, framework: Framework) -> Mapping[str, Any] | None:
    """The OpenShift Route to the TensorBoard, ``None`` where the job has none. TLS terminates at the router."""
    if not (job.tensorboard and framework.tensorboard):
        return None
    name = _name(job, framework.tensorboard)
    return {
        "apiVersion": c.ROUTE_API_VERSION,
        "kind": "Route",
        "metadata": _metadata(job, framework.tensorboard),
        "spec": {
            "to": {"kind": "Service", "name": name},
            "port": {"targetPort": _PORT_NAME},
            "tls": {"termination": "edge", "insecureEdgeTerminationPolicy": "Redirect"},
        },
    }


def _name(job: DLJob, declared: TensorBoardSpec) -> str:
    return fill(declared.name, {"job": job.name, "runtime_id": job.runtime_id})


def _metadata(job: DLJob, declared: TensorBoardSpec) -> dict[str, Any]:
    metadata = auxiliary_objects.metadata(job, _name(job, declared))
    return {**metadata, "labels": {**declared.labels, **metadata["labels"]}}


def _deployment(job: DLJob, tensorboard: TensorBoard, declared: TensorBoardSpec) -> dict[str, Any]:
    selector = {c.LABEL_TENSORBOARD_OF: job.uid}
    values = {
        "job": job.name,
        "runtime_id": job.runtime_id,
        "log_dir": tensorboard.log_dir,
        "program": declared.program,
    }
    container = {
        "name": declared.spec_field,
        "image": tensorboard.image,
        "command": [fill(text, values) for text in declared.command],
        "ports": [{"containerPort": declared.port}],
        # TensorBoard takes long to start; the Service must not route to it before
        "readinessProbe": {"httpGet": {"path": "/", "port": declared.port}, "timeoutSeconds": 5},
        "volumeMounts": [dict(mount) for mount in tensorboard.volume_mounts],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(job, declared),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": {"labels": {**declared.labels, "runtime_id": job.runtime_id, **selector}},
                "spec": {
                    "containers": [container],
                    "volumes": [dict(volume) for volume in tensorboard.volumes],
                    "enableServiceLinks": False,
                },
            },
        },
    }


def _service(job: DLJob, tensorboard: TensorBoard, declared: TensorBoardSpec) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(job, declared),
        "spec": {
            "type": tensorboard.service_type,
            "selector": {c.LABEL_TENSORBOARD_OF: job.uid},
            "ports": [{"name": _PORT_NAME, "port": SERVICE_PORT, "targetPort": declared.port}],
        },
    }
