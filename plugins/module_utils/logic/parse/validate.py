"""Validates a parsed job. Each error is a sentence with the field and the fix."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import naming
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import (
    build_cluster_spec,
    for_replica,
    placeholders,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.placeholders import fill
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import (
    failure_policy,
    restarts_within,
    stall_policy,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import quantities, texts
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import (
    MODE_LOCAL,
    NAME_LIMIT,
    RESTART_ALWAYS,
    RESTART_SCOPE_JOB,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import NAMES_JOB, Cluster, Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob

_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
VARIABLE_LIMIT = 131_071
"""Bytes of one environment variable, ``NAME=text``: Linux' MAX_ARG_STRLEN without the byte that ends it."""
_LARGE = 500
"""Number of replicas from which a variable may have that size: names have at most 250 characters."""

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def validation_errors(job: DLJob, framework: Framework) -> list[str]:
    """All errors of ``job``; empty for a valid one."""
    found = [*_counts(job, framework), *_names(job), *_restarts(job), *_templates(job, framework)]
    found += (*failure_policy.conflicts(job), *restarts_within.conflicts(job), *stall_policy.conflicts(job))
    if found:
        return found  # the following checks need a job that passes these
    cluster = build_cluster_spec(job, framework)
    return [*_labels(job, cluster), *(list(framework.hooks.validate(cluster)) or _environment(job, framework, cluster))]


def _counts(job: DLJob, framework: Framework) -> list[str]:
    errors = [*_repeated(job), *_out_of_bounds(job, framework)]
    if job.total == 0:
        errors.insert(0, "the job has no replicas: give at least one replica type a count above 0")
    target = job.group(job.success_target.type)
    if not errors and (target is None or target.replicas == 0):
        wanted = " or ".join(framework.success_target)
        errors.append(f"the job has no replica that decides when it succeeds: add a {wanted}")
    return errors


def _repeated(job: DLJob) -> Iterator[str]:
    seen: dict[str, str] = {}
    for group in job.groups:
        if group.type in seen:
            where = f"{seen[group.type]} and {group.path}"
            yield f"{where}: {group.type} is listed twice; put all its replicas into one entry"
        seen[group.type] = group.path


def _out_of_bounds(job: DLJob, framework: Framework) -> Iterator[str]:
    for type_ in framework.replica_types:
        group = job.group(type_.name)
        count = group.replicas if group else 0
        # a local job trains in one process and needs no coordinator
        minimum = 0 if job.mode == MODE_LOCAL else max(type_.minimum, int(type_.name in job.flavor.required))
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
    if job.flavor.names == NAMES_JOB and not _DNS_1035.fullmatch(job.name):
        yield (
            f"metadata.name: {job.name!r} must start with a letter and hold only lower-case letters, digits and '-', "
            "because pods and Services are named after it"
        )
    if not _LABEL.fullmatch(job.runtime_id):
        field = job.flavor.runtime_id_fields[0]
        yield f"spec.{field}: {job.runtime_id!r} must hold only lower-case letters, digits and '-'"
    yield from naming.too_long(job)


def _restarts(job: DLJob) -> Iterator[str]:
    if job.run_policy.restart_scope != RESTART_SCOPE_JOB:
        return
    if job.elastic_type:
        yield (
            f"spec.runPolicy.restartScope is Job, but the replicas of {job.elastic_type} are elastic and do "
            "not restart together: remove one of the two settings"
        )
    for group in job.groups:
        if group.restart_policy == RESTART_ALWAYS:
            yield (
                f"{group.path}: with restartPolicy Always, a job of spec.runPolicy.restartScope Job would restart "
                "even after success; use OnFailure or ExitCode"
            )


def _templates(job: DLJob, framework: Framework) -> Iterator[str]:
    """Check the types of the fields that the operator reads or extends; Kubernetes validates the others."""
    for one in (template for group in job.groups for template in group.templates):
        path, metadata, spec = one.path, one.template.get("metadata"), one.template.get("spec")
        yield from _maps(metadata, f"{path}.metadata", "labels", "annotations")
        containers = spec.get("containers") if isinstance(spec, Mapping) else None
        if not isinstance(spec, Mapping) or not _is_list_of_maps(containers):
            yield f"{path}.spec.containers must be a list of containers"
            continue
        if spec.get("initContainers") is not None and not _is_list_of_maps(spec["initContainers"]):
            yield f"{path}.spec.initContainers must be a list of containers"
        yield from _maps(spec, f"{path}.spec", "dnsConfig")
        searches = spec["dnsConfig"].get("searches") if isinstance(spec.get("dnsConfig"), Mapping) else None
        if searches is not None and not isinstance(searches, list):
            yield f"{path}.spec.dnsConfig.searches must be a list of domains"
        for number, container in enumerate(containers or ()):
            for field in ("env", "ports"):
                if container.get(field) is not None and not _is_list_of_maps(container[field]):
                    yield f"{path}.spec.containers[{number}].{field} must be a list of maps"
        yield from quantities.malformed(spec, f"{path}.spec")
        yield from texts.not_texts(one.template, path)
        names = [str(c.get("name")) for c in containers or ()]
        wanted = framework.container_of(names)
        if wanted not in names:
            which = f"a container named {wanted!r}" if wanted else "a container"
            yield (
                f"{path}.spec.containers: {which} is required, "
                f"the one that runs {framework.name}; there are: {', '.join(names) or 'none'}"
            )


def _environment(job: DLJob, framework: Framework, cluster: Cluster) -> Iterator[str]:
    """Check the size of variables, which list all replicas: Linux starts no process with a larger one."""
    if job.total < _LARGE:
        return
    for group in job.groups:
        if not group.replicas:
            continue
        environment = framework.hooks.environment(for_replica(cluster, group.type, group.replicas - 1))
        for name, text in environment.items():
            size = len(name) + 1 + len(text.encode()) if isinstance(text, str) else 0
            if size > VARIABLE_LIMIT:
                yield (
                    f"{group.path}: the variable {name} of {group.type} lists all {job.total} replicas and would have "
                    f"{size} bytes, and a process can have {VARIABLE_LIMIT}: use fewer replicas, or a shorter name"
                )
                return


def _labels(job: DLJob, cluster: Cluster) -> Iterator[str]:
    """Check the length of labels, which consist of several names that are each short enough."""
    for group in job.groups:
        if not group.replicas:
            continue
        values = {**placeholders(for_replica(cluster, group.type, group.replicas - 1)), "role": "master"}
        for name, text in job.flavor.labels.items():
            value = fill(text, values)
            if len(value) > NAME_LIMIT:
                yield (
                    f"metadata.name is {len(value) - NAME_LIMIT} characters too long: the pods' label {name} would be "
                    f"{value}, and a label has at most {NAME_LIMIT} characters"
                )


def _maps(holder: Any, path: str, *fields: str) -> Iterator[str]:
    if holder is not None and not isinstance(holder, Mapping):
        yield f"{path} must be a map"
        return
    for field in fields:
        value = (holder or {}).get(field)
        if value is not None and not isinstance(value, Mapping):
            yield f"{path}.{field} must be a map"


def _is_list_of_maps(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value)
