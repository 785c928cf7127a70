"""A plan made fit for the cluster's accelerators, between its making and its carrying out.

Only what is created is touched, so neither a changed ConfigMap nor a new node restarts a pod: the next one that is
made has it.
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
"""Seconds until another look at a job that waits for the ConfigMap, where nobody watches it."""


def required_info(planned: Plan, job: DLJob) -> RequiredInfo:
    """What must be known before ``planned`` is carried out; nothing for a plan without accelerators and programs."""
    asked = _asked(planned)
    settings = frozenset(program.file_setting for program in _programs(planned, job).values() if program.file_setting)
    return RequiredInfo(config=bool(asked or settings), nodes=ALPHA_GPU in asked, settings=settings)


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


def _asked(planned: Plan) -> frozenset[str]:
    return frozenset().union(*(limits.of_pod(pod["spec"]) for pod in planned.pods))


def _problems(planned: Plan, cluster_info: ClusterInfo) -> list[str]:
    asked = _asked(planned)
    names = {*asked, *(limits.alias(name, cluster_info.advertised) for name in asked)}
    found = cluster_info.config.problems
    return [found[name] for name in ("", *sorted(names)) if name in found] if asked else []


def _programs(planned: Plan, job: DLJob) -> dict[str, DefaultProgram]:
    """The role's programs among the plan's companions, by the name of their ConfigMap."""
    programs = {
        program_name(job, group.default_program): group.default_program for group in job.groups if group.default_program
    }
    made = {c["metadata"]["name"] for c in planned.auxiliary_objects if c["kind"] == "ConfigMap"}
    return {name: program for name, program in programs.items() if name in made}


def _with_files(planned: Plan, job: DLJob, texts: Mapping[str, str]) -> tuple[Mapping[str, Any], ...]:
    programs = _programs(planned, job)

    def replaced(companion: Mapping[str, Any]) -> Mapping[str, Any]:
        program = programs.get(companion["metadata"]["name"]) if companion["kind"] == "ConfigMap" else None
        if program is None or program.file_setting not in texts:
            return companion
        return {**companion, "data": dict.fromkeys(program.files, texts[program.file_setting])}

    return tuple(replaced(companion) for companion in planned.auxiliary_objects)
