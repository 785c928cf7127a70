"""Writes a job as kubeflow.org/v1 or as a DLJob."""

from __future__ import annotations

import copy
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.convert.model import (
    TO_V1,
    Conversion,
    Group,
    NotConvertible,
    Replicas,
    SourceJob,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import any_framework
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob

_SHORT = {"name", *any_framework.CONTAINER_FIELDS}


def to_v1(source: SourceJob) -> Conversion:
    """The job as kubeflow.org/v1; raises :class:`NotConvertible` for a framework without such a kind."""
    framework, kind = source.declared.framework, source.declared.v1_kind()
    if not kind:
        raise NotConvertible(f"kind: kubeflow.org/v1 has no jobs of {framework.name}: convert to dljob")
    if source.mode and not source.v1_mode:
        raise NotConvertible(
            "spec.jobMode: kubeflow.org/v1 has no jobs of independent processes without a scheduler: convert to dljob"
        )
    (field,) = framework.flavors[-1].replicas_fields
    replicas = {
        type_: {
            "replicas": one.count,
            **({"restartPolicy": one.restart_policy} if one.restart_policy else {}),
            "template": copy.deepcopy(one.template),
            **({"groups": [_group(group) for group in one.groups]} if one.groups else {}),
        }
        for type_, one in source.replicas.items()
    }
    mode = {"jobMode": source.v1_mode} if source.v1_mode else {}
    spec = {**_common(source), **copy.deepcopy(source.options), **mode, field: replicas}
    manifest = {"apiVersion": TO_V1, "kind": kind, "metadata": copy.deepcopy(source.metadata), "spec": spec}
    try:
        parse_job(manifest, framework)
    except InvalidJob as e:
        for problem in e.problems:
            source.report.lose(*_split(problem))
    return Conversion(manifest, source.report)


def to_dljob(source: SourceJob) -> Conversion:
    """The job as a DLJob."""
    framework = source.declared.framework
    options = {**copy.deepcopy(source.options), **({"jobMode": source.mode} if source.mode else {})}
    elastic = options.get("elasticPolicy")
    if isinstance(elastic, dict) and elastic.pop("metrics", None):
        source.report.lose("spec.elasticPolicy.metrics", "a DLJob has no scale subresource, which an autoscaler needs")
    spec: dict[str, Any] = {
        "framework": framework.name,
        "replicas": {type_: _entry(one, framework.container) for type_, one in source.replicas.items()},
        **({"options": options} if options else {}),
        **_common(source),
    }
    manifest = {
        "apiVersion": f"{any_framework.GROUP}/{any_framework.VERSION}",
        "kind": any_framework.KIND,
        "metadata": copy.deepcopy(source.metadata),
        "spec": spec,
    }
    try:
        any_framework.parse_any(manifest, any_framework.adapt(framework))
    except InvalidJob as e:
        for problem in e.problems:
            source.report.lose(*_split(problem))
    return Conversion(manifest, source.report)


def _common(source: SourceJob) -> dict[str, Any]:
    return {
        **({"runPolicy": copy.deepcopy(source.run_policy)} if source.run_policy else {}),
        **({"schedulerName": source.scheduler_name} if source.scheduler_name else {}),
    }


def _group(group: Group) -> dict[str, Any]:
    return {"name": group.name, "replicas": group.count, "template": copy.deepcopy(group.template)}


def _entry(replicas: Replicas, container: str) -> dict[str, Any]:
    made: dict[str, Any] = {"count": replicas.count}
    if replicas.restart_policy:
        made["restartPolicy"] = replicas.restart_policy
    made |= _pod(replicas.template, container)
    if replicas.groups:
        made["groups"] = [
            {"name": one.name, "count": one.count, **_pod(one.template, container)} for one in replicas.groups
        ]
    return made


def _pod(source: dict[str, Any], container: str) -> dict[str, Any]:
    """The template, in the short form where it has nothing but that."""
    template = copy.deepcopy(source)
    containers = template["spec"]["containers"]
    is_short = set(template) <= {"spec"} and set(template["spec"]) == {"containers"} and len(containers) == 1
    if is_short and set(containers[0]) <= _SHORT and containers[0]["name"] == container and containers[0].get("image"):
        return {name: containers[0][name] for name in any_framework.CONTAINER_FIELDS if name in containers[0]}
    return {"template": template}


def _split(problem: str) -> tuple[str, str]:
    """An error of a job as a field and a reason."""
    field, colon, reason = problem.partition(": ")
    return (field, reason) if colon and " " not in field else ("spec", problem)
