"""The objects that a job owns besides pods and Services.

Every plan that creates a pod also creates the objects that the pod needs; where the object already exists, the writer
keeps it. A reconcile creates a deleted object again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.ownership import owner_reference
from ansible_collections.dljob.operator.plugins.module_utils.logic.placeholders import fill
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import DefaultProgram
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob


def of_pods(job: DLJob, types: Collection[str]) -> tuple[Mapping[str, Any], ...]:
    """The objects that pods of these replica types need to start."""
    programs = (group.default_program for group in job.groups if group.type in types)
    return tuple(_config_map(job, program) for program in programs if program)


def metadata(job: DLJob, name: str) -> dict[str, Any]:
    """The metadata of an object that ``job`` owns."""
    return {
        "name": name,
        "namespace": job.namespace,
        "labels": {c.LABEL_MANAGED_BY: c.MANAGER, c.LABEL_JOB_UID: job.uid},
        "ownerReferences": [owner_reference(job)],
    }


def program_name(job: DLJob, program: DefaultProgram) -> str:
    """The name of the ConfigMap that holds a role's own program."""
    return fill(program.config_map, {"job": job.name, "runtime_id": job.runtime_id})


def _config_map(job: DLJob, program: DefaultProgram) -> Mapping[str, Any]:
    name = program_name(job, program)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(job, name), "data": dict(program.files)}
