"""Adapts a plan to the cluster's accelerators before the writer applies it.

It changes only objects that the plan creates, so neither a changed ConfigMap nor a new node restarts a pod; the next
created pod uses the new configuration.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.accelerators import limits
from ansible_collections.dljob.operator.plugins.module_utils.logic.accelerators.inject import inject
from ansible_collections.dljob.operator.plugins.module_utils.logic.auxiliary_objects import program_name
from ansible_collections.dljob.operator.plugins.module_utils.values.accelerators import (
    ALPHA_GPU,
    ClusterInfo,
    RequiredInfo,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.apply_result import Resolution
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import DefaultProgram
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Plan

AGAIN = 30.0
"""Seconds until the next reconcile of a job that waits for a fix of the ConfigMap, where no engine watches it."""


def required_info(planned: Plan, job: DLJob) -> RequiredInfo:
    """The cluster info that ``planned`` needs; nothing for a plan without accelerators and programs."""
    requested = _requested(planned)
    settings = frozenset(program.file_setting for program in _programs(planned, job).values() if program.file_setting)
    return RequiredInfo(config=bool(requested or settings), nodes=ALPHA_GPU in requested, settings=settings)


def resolve_accelerators(
    planned: Plan, job: DLJob, cluster_info: ClusterInfo, warnings: tuple[str, ...] = ()
) -> Resolution:
    """``planned`` with the volumes, variables and programs that ``cluster_info`` gives its pods.

    Where the ConfigMap is wrong about an accelerator that one of the pods requests, the plan creates nothing at all: a
    job of which only a part runs would hold resources and wait for the rest.
    """
    problems = _problems(planned, cluster_info)
    if problems:
        without = dataclasses.replace(planned, auxiliary_objects=(), services=(), pods=())
        return Resolution(without, tuple(problems), None if cluster_info.watched else AGAIN, warnings)
    resolved = dataclasses.replace(
        planned,
        auxiliary_objects=_with_files(planned, job, cluster_info.programs),
        pods=tuple(inject(pod, cluster_info) for pod in planned.pods),
    )
    return Resolution(resolved, warnings=warnings)


def _requested(planned: Plan) -> frozenset[str]:
    return frozenset().union(*(limits.of_pod(pod["spec"]) for pod in planned.pods))


def _problems(planned: Plan, cluster_info: ClusterInfo) -> list[str]:
    requested = _requested(planned)
    names = {*requested, *(limits.alias(name, cluster_info.advertised) for name in requested)}
    found = cluster_info.config.problems
    return [found[name] for name in ("", *sorted(names)) if name in found] if requested else []


def _programs(planned: Plan, job: DLJob) -> dict[str, DefaultProgram]:
    """The role's programs among the plan's auxiliary objects, by the name of their ConfigMap."""
    programs = {
        program_name(job, group.default_program): group.default_program for group in job.groups if group.default_program
    }
    created = {c["metadata"]["name"] for c in planned.auxiliary_objects if c["kind"] == "ConfigMap"}
    return {name: program for name, program in programs.items() if name in created}


def _with_files(planned: Plan, job: DLJob, texts: Mapping[str, str]) -> tuple[Mapping[str, Any], ...]:
    programs = _programs(planned, job)

    def replaced(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
        program = programs.get(manifest["metadata"]["name"]) if manifest["kind"] == "ConfigMap" else None
        if program is None or program.file_setting not in texts:
            return manifest
        return {**manifest, "data": dict.fromkeys(program.files, texts[program.file_setting])}

    return tuple(replaced(manifest) for manifest in planned.auxiliary_objects)
