"""The web page about a job (seed 003's TensorBoard): a Deployment and a Service that outlive the training.

Each carries a fingerprint of what it was made from: what is missing is made again, what was made from another
``spec.tensorboard`` is replaced, and a job that no longer asks for a page loses it.
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
    """The page that the spec asks for, ``None`` where it asks for none; what is wrong is added to ``errors``."""
    declared = framework.tensorboard
    asked = options.get(declared.spec_field) if declared else None
    if declared is None or asked is None:
        return None
    path = f"spec.{declared.spec_field}"
    if not isinstance(asked, Mapping):
        errors.append(f"{path} must be a map with logDir")
        return None
    log_dir = asked.get("logDir")
    if not (isinstance(log_dir, str) and log_dir):
        errors.append(f"{path}.logDir is missing: name the directory of the event files there")
        return None
    for name in ("volumes", "volumeMounts"):
        held = asked.get(name) or []
        if not isinstance(held, list) or not all(isinstance(item, Mapping) for item in held):
            errors.append(f"{path}.{name} must be a list of maps")
            return None
    service_type = asked.get("serviceType") or c.SERVICE_TYPES[0]
    if service_type not in c.SERVICE_TYPES:
        errors.append(f"{path}.serviceType: {service_type!r} is none of {', '.join(c.SERVICE_TYPES)}")
    return TensorBoard(
        log_dir=log_dir,
        image=str(options.get(declared.image_field) or declared.image),
        service_type=str(service_type),
        volumes=tuple(asked.get("volumes") or ()),
        volume_mounts=tuple(asked.get("volumeMounts") or ()),
    )


def names(job: DLJob, framework: Framework) -> tuple[str, ...]:
    """Names of the Services of the page; none where the job has no page."""
    return (_name(job, framework.tensorboard),) if job.tensorboard and framework.tensorboard else ()


def build(job: DLJob, framework: Framework) -> tuple[dict[str, Any], ...]:
    """The objects of the page, in the order in which they are made; none where the job has no page."""
    if not (job.tensorboard and framework.tensorboard):
        return ()
    made = (
        _deployment(job, job.tensorboard, framework.tensorboard),
        _service(job, job.tensorboard, framework.tensorboard),
    )
    for manifest in made:
        text = json.dumps(manifest["spec"], sort_keys=True, default=str)
        manifest["metadata"]["annotations"] = {c.ANNOTATION_SPEC_HASH: hashlib.sha256(text.encode()).hexdigest()[:16]}
    return made


def due(job: DLJob, framework: Framework, observed: Observed) -> tuple[Mapping[str, Any], ...]:
    """Those objects of the page that are missing, or were made from another spec."""

    def stands(manifest: Mapping[str, Any]) -> bool:
        metadata = manifest["metadata"]
        held = observed.owned_objects.get((manifest["kind"], metadata["name"]))
        return held is not None and held.hash == metadata["annotations"][c.ANNOTATION_SPEC_HASH]

    return tuple(manifest for manifest in build(job, framework) if not stands(manifest))


def surplus(job: DLJob, framework: Framework, observed: Observed) -> tuple[Deletion, ...]:
    """Objects of a page that the job no longer asks for, or asks for under another name."""
    if framework.tensorboard is None:
        return ()
    wanted, own = names(job, framework), _name(job, framework.tensorboard)
    return tuple(
        Deletion(kind, name, held.uid, _API_VERSIONS[kind])
        for (kind, name), held in observed.owned_objects.items()
        # of the job's Services only the page's has a fingerprint, or (of an earlier release) its very name
        if name not in wanted and (kind == "Deployment" or (kind == "Service" and (held.hash or name == own)))
    )


def route(job: DLJob, framework: Framework) -> Mapping[str, Any] | None:
    """OpenShift's way to the page from outside, ``None`` where the job has no page. TLS ends at the router."""
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


def _deployment(job: DLJob, page: TensorBoard, declared: TensorBoardSpec) -> dict[str, Any]:
    selector = {c.LABEL_TENSORBOARD_OF: job.uid}
    values = {
        "job": job.name,
        "runtime_id": job.runtime_id,
        "log_dir": page.log_dir,
        "program": declared.program,
    }
    container = {
        "name": declared.spec_field,
        "image": page.image,
        "command": [fill(text, values) for text in declared.command],
        "ports": [{"containerPort": declared.port}],
        # no traffic before the page is there: a program of this size takes its time to start
        "readinessProbe": {"httpGet": {"path": "/", "port": declared.port}, "timeoutSeconds": 5},
        "volumeMounts": [dict(mount) for mount in page.volume_mounts],
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
                    "volumes": [dict(volume) for volume in page.volumes],
                    "enableServiceLinks": False,
                },
            },
        },
    }


def _service(job: DLJob, page: TensorBoard, declared: TensorBoardSpec) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(job, declared),
        "spec": {
            "type": page.service_type,
            "selector": {c.LABEL_TENSORBOARD_OF: job.uid},
            "ports": [{"name": _PORT_NAME, "port": SERVICE_PORT, "targetPort": declared.port}],
        },
    }
