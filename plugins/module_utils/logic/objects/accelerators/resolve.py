"""Adapts a plan to the cluster's accelerators before the writer applies it.

It changes only objects that the plan creates, so neither a changed ConfigMap nor a new node restarts a pod; the next
created pod uses the new configuration.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.accelerators.inject import inject
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.batch_job import pod_of, with_pod
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import accelerator_limits
from ansible_collections.dljob.operator.plugins.module_utils.values.accelerators import (
    ALPHA_GPU,
    ClusterInfo,
    RequiredInfo,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.apply_result import Resolution
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Plan

AGAIN = 30.0
"""Seconds until the next reconcile of a job that waits for a fix of the ConfigMap, where no engine watches it."""


def required_info(planned: Plan, framework: Framework) -> RequiredInfo:
    """The cluster info that ``planned`` needs; nothing for a plan without accelerators and replaceable files."""
    requested = _requested(planned)
    keys = {key for manifest in _config_maps(planned) for key in manifest.get("data") or ()}
    settings = frozenset(setting for key, setting in framework.operator_files.items() if key in keys)
    return RequiredInfo(config=bool(requested or settings), nodes=ALPHA_GPU in requested, settings=settings)


def resolve_accelerators(
    planned: Plan, framework: Framework, cluster_info: ClusterInfo, warnings: tuple[str, ...] = ()
) -> Resolution:
    """``planned`` with the volumes, variables and files that ``cluster_info`` gives its pods.

    Where the ConfigMap is wrong about an accelerator that one of the pods requests, the plan creates nothing at all: a
    job of which only a part runs would hold resources and wait for the rest.
    """
    problems = _problems(planned, cluster_info)
    if problems:
        without = dataclasses.replace(planned, auxiliary_objects=(), services=(), pods=())
        return Resolution(without, tuple(problems), None if cluster_info.watched else AGAIN, warnings)
    resolved = dataclasses.replace(
        planned,
        auxiliary_objects=_with_files(planned.auxiliary_objects, framework, cluster_info.programs),
        ensured_objects=_with_files(planned.ensured_objects, framework, cluster_info.programs),
        pods=tuple(with_pod(one, inject(pod_of(one), cluster_info)) for one in planned.pods),
    )
    return Resolution(resolved, warnings=warnings)


def _requested(planned: Plan) -> frozenset[str]:
    return frozenset().union(*(accelerator_limits.of_pod(pod_of(one)["spec"]) for one in planned.pods))


def _problems(planned: Plan, cluster_info: ClusterInfo) -> list[str]:
    requested = _requested(planned)
    names = {*requested, *(accelerator_limits.alias(name, cluster_info.advertised) for name in requested)}
    found = cluster_info.config.problems
    return [found[name] for name in ("", *sorted(names)) if name in found] if requested else []


def _config_maps(planned: Plan) -> list[Mapping[str, Any]]:
    return [m for m in (*planned.auxiliary_objects, *planned.ensured_objects) if m["kind"] == "ConfigMap"]


def _with_files(
    manifests: tuple[Mapping[str, Any], ...], framework: Framework, texts: Mapping[str, str]
) -> tuple[Mapping[str, Any], ...]:
    """``manifests`` with the files by which the administrator replaces some of the framework's."""
    replaced = {key: texts[setting] for key, setting in framework.operator_files.items() if setting in texts}
    if not replaced:
        return manifests

    def resolved(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
        data = manifest.get("data") or {}
        if manifest["kind"] != "ConfigMap" or not replaced.keys() & data.keys():
            return manifest
        return {**manifest, "data": {key: replaced.get(key, text) for key, text in data.items()}}

    return tuple(resolved(manifest) for manifest in manifests)
