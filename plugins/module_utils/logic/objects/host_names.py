"""Whether the pods of a template have the job's hostname and subdomain, or those that the template gives.

The job needs its own wherever a process finds a replica by the name that hostname and subdomain give it. The success
target of most kinds has a Service of its own name, so that it is found without them, and so has every replica where the
job has Services per replica. A template that gives neither always gets the job's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import naming
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import for_replica
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import SERVICES_PER_REPLICA
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import (
    NAMES_JOB,
    SERVICE_JOB,
    Cluster,
    Framework,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, PodTemplate, ReplicaGroup

LONGEST_FULL_NAME = 64
"""Characters of a host name under Linux. The kubelet starts no pod with setHostnameAsFQDN whose full name is longer."""


def given(template: Mapping[str, Any]) -> dict[str, Any]:
    """The hostname and the subdomain that a template gives."""
    spec = as_mapping(template.get("spec"))
    return {name: spec[name] for name in ("hostname", "subdomain") if spec.get(name)}


def replaceable(job: DLJob, framework: Framework, cluster: Cluster) -> frozenset[str]:
    """The replica types whose replicas the job finds without its own hostname and subdomain.

    Only types of which a template gives one of the two: for the others nothing has to be known. ``cluster`` is the
    job's cluster spec.
    """
    types = {group.type for group in job.groups if any(given(one.template) for one in group.templates)}
    if types and job.services == SERVICES_PER_REPLICA:
        return frozenset(types.difference(_recognized_by_hostname(job)))
    if not types or not _has_short_names(job):
        return frozenset()
    return frozenset(types.difference(_recognized_by_hostname(job), _mentioned(job, framework, cluster)))


def _has_short_names(job: DLJob) -> bool:
    """Whether the success target has a Service of its own name.

    Other names contain the job's subdomain; and the launcher of an MPIJob tells its workers its hostname.
    """
    return job.flavor.names == NAMES_JOB and job.flavor.service != SERVICE_JOB


def _recognized_by_hostname(job: DLJob) -> frozenset[str]:
    """The elastic type: torchrun compares the address of the rendezvous with its hostname to learn who serves it."""
    elastic = job.flavor.elastic
    is_elastic = elastic is not None and job.options.get(elastic.field) not in (None, False)
    return frozenset({elastic.type}) if elastic and is_elastic else frozenset()


def _mentioned(job: DLJob, framework: Framework, cluster: Cluster) -> set[str]:
    """The types of the replicas whose names a process of the job may use, except the success target."""
    target = naming.host_name(job, job.success_target.type, job.success_target.index)
    types = {group.type.lower(): group.type for group in job.groups}
    name = re.compile(rf"(?<![\w-]){re.escape(job.name)}-({'|'.join(map(re.escape, types))})(?:-[0-9]+)?(?![\w-])")
    found = (match for text in _texts(job, framework, cluster) for match in name.finditer(text))
    return {types[match[1]] for match in found if match[0] != target}


def _texts(job: DLJob, framework: Framework, cluster: Cluster) -> Iterator[str]:
    """The templates, what the first and the last replica of each get, and the objects of the job."""
    for group in job.groups:
        yield from (json.dumps(one.template, default=str) for one in group.templates if one.indexes)
        for index in sorted({i for one in group.templates for i in ends(one)}):
            replica = for_replica(cluster, group.type, index)
            yield from map(str, framework.hooks.environment(replica).values())
            if framework.hooks.pod:
                yield json.dumps(framework.hooks.pod(replica), default=str)
    if framework.hooks.objects:
        yield json.dumps(list(framework.hooks.objects(cluster)), default=str)


def ends(template: PodTemplate) -> tuple[int, ...]:
    """The first and the last index of the replicas of a template; what differs by replica differs between these."""
    return tuple(sorted({template.indexes[0], template.indexes[-1]})) if template.indexes else ()


def network_names(job: DLJob, group: ReplicaGroup, index: int, *, is_replaceable: bool, domain: str) -> dict[str, Any]:
    """The fields of the pod's spec that replace those of its template.

    ``is_replaceable``: whether the type is one of :func:`replaceable`. ``domain`` is that of the cluster.
    """
    template = group.template_of(index).template
    own = given(template)
    if own and is_replaceable:
        return own
    names: dict[str, Any] = {
        "hostname": naming.host_name(job, group.type, index),
        "subdomain": naming.service_name(job),
    }
    spec = as_mapping(template.get("spec"))
    if (
        spec.get("setHostnameAsFQDN")
        and not spec.get("hostNetwork")
        and _full_name(job, group, domain) > LONGEST_FULL_NAME
    ):
        names["setHostnameAsFQDN"] = False
    return names


def _full_name(job: DLJob, group: ReplicaGroup, domain: str) -> int:
    """The length of the longest full name of the pods of a type."""
    host = naming.host_name(job, group.type, max(group.replicas - 1, 0))
    return len(f"{host}.{naming.service_name(job)}.{job.namespace}.svc.{domain}")
