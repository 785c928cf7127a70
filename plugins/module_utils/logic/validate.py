"""What must hold between the fields of a job, each fault a sentence with the field and the fix."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic import naming
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import MODE_LOCAL
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import NAMES_JOB, Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, ReplicaGroup

_DNS_1035 = re.compile(r"^[a-z]([-a-z0-9]*[a-z0-9])?$")
_LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")


def problems_of(job: DLJob, framework: Framework) -> list[str]:
    """Every fault of ``job``; empty for a good one."""
    return [*_counts(job, framework), *_names(job), *_templates(job, framework)]


def _counts(job: DLJob, framework: Framework) -> Iterator[str]:
    if job.total == 0:
        yield "the job has no replicas: give at least one replica type a count above 0"
    seen: dict[str, str] = {}
    for group in job.groups:
        if group.type in seen:
            yield f"{group.path}: {group.type} is listed twice, at {seen[group.type]} too; put its replicas into one entry"
        seen[group.type] = group.path
    for type_ in framework.replica_types:
        group = job.group(type_.name)
        count = group.replicas if group else 0
        # a local job trains in one process and needs nobody to coordinate it
        minimum = 0 if job.mode == MODE_LOCAL else type_.minimum
        if count < minimum:
            yield f"the job has {count} {type_.name} replicas: it needs {_exactly(minimum, type_.maximum)} {type_.name}"
        elif type_.maximum is not None and count > type_.maximum:
            where = group.path if group else "spec"
            yield f"{where}.replicas is {count}: a job has {_exactly(minimum, type_.maximum)} {type_.name}"


def _exactly(minimum: int, maximum: int | None) -> str:
    if minimum == maximum:
        return f"exactly {minimum}"
    return f"at least {minimum}" if maximum is None else f"at most {maximum}"


def _names(job: DLJob) -> Iterator[str]:
    if job.dialect.names == NAMES_JOB and not _DNS_1035.match(job.name):
        yield (
            f"metadata.name: {job.name!r} must start with a letter and hold only lower-case letters, digits and '-', "
            "because pods and Services are named after it"
        )
    if not _LABEL.match(job.runtime_id):
        yield f"spec.RuntimeId: {job.runtime_id!r} must hold only lower-case letters, digits and '-'"
    yield from naming.too_long(job)


def _templates(job: DLJob, framework: Framework) -> Iterator[str]:
    for group in job.groups:
        containers = _containers(group)
        if containers is None:
            yield f"{group.path}.template.spec.containers must be a list of containers"
            continue
        if not any(c.get("name") == framework.container for c in containers):
            yield (
                f"{group.path}.template.spec.containers: a container named {framework.container!r} is needed, "
                f"the one that runs {framework.name}; there are: {', '.join(str(c.get('name')) for c in containers) or 'none'}"
            )


def _containers(group: ReplicaGroup) -> list[Mapping[str, Any]] | None:
    spec = group.template.get("spec")
    containers = spec.get("containers") if isinstance(spec, Mapping) else None
    if not isinstance(containers, list) or not all(isinstance(c, Mapping) for c in containers):
        return None
    return containers
