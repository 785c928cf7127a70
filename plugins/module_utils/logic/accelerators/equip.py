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
from ansible_collections.dljob.operator.plugins.module_utils.logic.companions import program_name
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan import postpone
from ansible_collections.dljob.operator.plugins.module_utils.values.accelerators import ALPHA_GPU, Needs, Site
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Standard
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Plan

AGAIN = 30.0
"""Seconds until another look at a job that waits for the ConfigMap, where nobody watches it."""


def needs_of(planned: Plan, job: DLJob) -> Needs:
    """What must be known before ``planned`` is carried out; nothing for a plan without accelerators and programs."""
    asked = _asked(planned)
    settings = frozenset(program.file_setting for program in _programs(planned, job).values() if program.file_setting)
    return Needs(config=bool(asked or settings), nodes=ALPHA_GPU in asked, settings=settings)


def equip(planned: Plan, job: DLJob, site: Site) -> Plan:
    """``planned`` with its pods and programs as ``site`` wants them.

    Where the ConfigMap is wrong about what one of the pods asks for, nothing is created at all and the job says so: a
    job that runs in part only would hold resources and wait for the rest.
    """
    problems = _problems(planned, site)
    if problems:
        held = dataclasses.replace(planned, companions=(), services=(), pods=())
        told = postpone(held, job, problems)
        return told if site.watched else dataclasses.replace(told, requeue_after=_soonest(told.requeue_after))
    return dataclasses.replace(
        planned,
        companions=_with_files(planned, job, site.programs),
        pods=tuple(inject(pod, site) for pod in planned.pods),
    )


def _asked(planned: Plan) -> frozenset[str]:
    return frozenset().union(*(limits.of_pod(pod["spec"]) for pod in planned.pods))


def _problems(planned: Plan, site: Site) -> list[str]:
    asked = _asked(planned)
    names = {*asked, *(limits.alias(name, site.advertised) for name in asked)}
    found = site.config.problems
    return [found[name] for name in ("", *sorted(names)) if name in found] if asked else []


def _programs(planned: Plan, job: DLJob) -> dict[str, Standard]:
    """The role's programs among the plan's companions, by the name of their ConfigMap."""
    programs = {program_name(job, group.standard): group.standard for group in job.groups if group.standard}
    made = {c["metadata"]["name"] for c in planned.companions if c["kind"] == "ConfigMap"}
    return {name: program for name, program in programs.items() if name in made}


def _with_files(planned: Plan, job: DLJob, texts: Mapping[str, str]) -> tuple[Mapping[str, Any], ...]:
    programs = _programs(planned, job)

    def replaced(companion: Mapping[str, Any]) -> Mapping[str, Any]:
        program = programs.get(companion["metadata"]["name"]) if companion["kind"] == "ConfigMap" else None
        if program is None or program.file_setting not in texts:
            return companion
        return {**companion, "data": dict.fromkeys(program.files, texts[program.file_setting])}

    return tuple(replaced(companion) for companion in planned.companions)


def _soonest(wait: float | None) -> float:
    return AGAIN if wait is None else min(wait, AGAIN)
