"""Writes a job as a TrainJob of Kubeflow Trainer v2 (trainer.kubeflow.org/v1alpha1, since 2.2).

A TrainJob has one kind of node, and leaves restarts, clean-up and most of the pod to the runtime that it refers to.
What it has no field for is reported as lost.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.convert.model import (
    Conversion,
    NotConvertible,
    Report,
    SourceJob,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_list, as_mapping

API_VERSION = "trainer.kubeflow.org/v1alpha1"
RUNTIMES = {"pytorch": "torch-distributed", "jax": "jax-distributed", "xgboost": "xgboost-distributed"}
"""The default runtimes of Trainer v2, by framework."""
MANAGER = "dljob.operator/convert"
NODE = "node"
"""The replicated job, and the container, of these runtimes."""

_TRAINER = {"image": "image", "command": "command", "args": "args", "env": "env", "resources": "resourcesPerNode"}
_PATCHED_CONTAINER = ("volumeMounts", "securityContext")
_PATCHED_POD = (
    "serviceAccountName",
    "volumes",
    "imagePullSecrets",
    "securityContext",
    "nodeSelector",
    "affinity",
    "tolerations",
    "schedulingGates",
)
_SAME_RUN_POLICY = ("suspend", "activeDeadlineSeconds")
_RUNTIME_DECIDES = "a TrainJob has no such field: its runtime decides"


def to_trainjob(source: SourceJob) -> Conversion:
    """The job as a TrainJob; raises :class:`NotConvertible` for a framework without a runtime."""
    name, report = source.declared.framework.name, source.report
    if name not in RUNTIMES:
        raise NotConvertible(
            f"kind: Kubeflow Trainer v2 has no runtime for {name}: it has some for {', '.join(RUNTIMES)}"
        )
    first = next(iter(source.replicas.values()))
    for one in list(source.replicas.values())[1:]:
        if _canonical(one.template) != _canonical(first.template):
            report.lose(f"{one.path}.template", f"a TrainJob has one template: that of {first.path} is used")
    for one in source.replicas.values():
        if one.groups:
            report.lose(f"{one.path}.groups", f"a TrainJob has one template: that of {first.path} is used")
        if one.restart_policy:
            report.lose(f"{one.path}.restartPolicy", _RUNTIME_DECIDES)
    container, sidecars = _containers(source, first.template)
    path = f"{first.path}.template.spec"
    for sidecar in sidecars:
        report.lose(f"{path}.containers", f"{sidecar!r}: a TrainJob adds no containers: add it to a runtime")
    trainer = {"numNodes": sum(one.count for one in source.replicas.values())}
    trainer |= {to: copy.deepcopy(container[name]) for name, to in _TRAINER.items() if name in container}
    spec: dict[str, Any] = {"runtimeRef": {"name": RUNTIMES[name]}, "trainer": trainer}
    _options(source, trainer, container, f"{path}.containers", report)
    if patch := _patch(first.template, container, path, report):
        jobs = [{"name": NODE, "template": {"spec": {"template": patch}}}]
        runtime = {"template": {"spec": {"replicatedJobs": jobs}}}
        spec["runtimePatches"] = [{"manager": MANAGER, "trainingRuntimeSpec": runtime}]
    _run_policy(source.run_policy, spec, report)
    if source.scheduler_name:
        report.lose("spec.schedulerName", _RUNTIME_DECIDES)
    manifest = {"apiVersion": API_VERSION, "kind": "TrainJob", "metadata": copy.deepcopy(source.metadata), "spec": spec}
    return Conversion(manifest, report)


def _containers(source: SourceJob, template: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[str]]:
    name = source.declared.framework.container
    containers = template["spec"]["containers"]
    own = next(one for one in containers if one["name"] == name)
    return own, [str(one.get("name")) for one in containers if one is not own]


def _options(
    source: SourceJob, trainer: dict[str, Any], container: Mapping[str, Any], path: str, report: Report
) -> None:
    framework = source.declared.framework.name
    words = [word for name in ("command", "args") for word in as_list(container.get(name))]
    if framework == "pytorch" and not any(
        "torchrun" in str(word) or "torch.distributed" in str(word) for word in words
    ):
        report.lose(
            f"{path}.command",
            "the runtime sets PET_*, which torchrun reads, and neither RANK, WORLD_SIZE nor MASTER_ADDR: start the "
            "program with torchrun",
        )
    if framework == "xgboost":
        report.lose(path, "the runtime sets DMLC_*, and none of MASTER_ADDR, RANK, WORLD_SIZE and WORKER_ADDRS")
    if framework == "jax":
        report.note(path, "the runtime sets JAX_*, and none of COORDINATOR_ADDRESS, NUM_PROCESSES and PROCESS_ID")
    for name, value in source.options.items():
        if name == "nprocPerNode":
            if str(value).isdecimal():
                trainer["numProcPerNode"] = int(value)
            elif value != "auto":
                report.lose(f"spec.{name}", f"{value!r}: numProcPerNode of a TrainJob is a number, or auto by default")
        elif name == "elasticPolicy":
            report.lose(f"spec.{name}", "Trainer v2 has no elastic training: numNodes is the number of workers")
        else:
            report.lose(f"spec.{name}", _RUNTIME_DECIDES)


def _patch(template: Mapping[str, Any], container: Mapping[str, Any], path: str, report: Report) -> dict[str, Any]:
    """What of the template is a patch of the runtime's pods."""
    made: dict[str, Any] = {}
    pod: dict[str, Any] = {}
    for name, value in template["spec"].items():
        if name in _PATCHED_POD:
            pod[name] = copy.deepcopy(value)
        elif name != "containers":
            report.lose(f"{path}.{name}", _RUNTIME_DECIDES)
    patched = {name: copy.deepcopy(container[name]) for name in _PATCHED_CONTAINER if name in container}
    for name in container:
        if name not in (*_TRAINER, *_PATCHED_CONTAINER, "name"):
            report.lose(f"{path}.containers.{name}", _RUNTIME_DECIDES)
    if patched:
        pod["containers"] = [{"name": NODE, **patched}]
    metadata = as_mapping(template.get("metadata"))
    kept = {name: copy.deepcopy(metadata[name]) for name in ("labels", "annotations") if metadata.get(name)}
    for name in metadata:
        if name not in ("labels", "annotations"):
            report.lose(f"{path.removesuffix('.spec')}.metadata.{name}", _RUNTIME_DECIDES)
    if kept:
        made["metadata"] = kept
    if pod:
        made["spec"] = pod
    return made


def _run_policy(policy: Mapping[str, Any], spec: dict[str, Any], report: Report) -> None:
    for name, value in policy.items():
        if name in _SAME_RUN_POLICY:
            spec[name] = value
        elif name == "managedBy":
            if value == "kueue.x-k8s.io/multikueue":
                spec[name] = value
        else:
            report.lose(f"spec.runPolicy.{name}", _RUNTIME_DECIDES)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
