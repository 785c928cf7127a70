"""The cluster spec: a job's replicas as plain data, the argument of every hook.

Shape::

    {"job": {"name", "namespace", "uid", "kind", "api_version", "runtime_id", "mode", "form",
             "version"},
     "replicas": {"Worker": [{"host": "...", "port": 2222, "rank": 3}, ...], ...},
     "templates": {"Worker": {"annotations": {...}, "containers": ["mxnet"], "limits": ["cpu", "memory"],
                              "processors": {"mxnet": 2}, "service_account": "", "fields": {...}}, ...},
     "spec": {"backendSpecs": {...}},
     "files": {"program.py": "..."},
     "settings": {"mpiKubectlDeliveryImage": "..."},
     "service_domain": "", "total": 4, "attempt": 0,
     "task": {"type": "Worker", "index": 0, "rank": 3}}

``form`` is the status format of the job's flavor, ``v1`` or ``v1alpha1``, ``version`` the API version of a flavor that
belongs to one, else "". ``spec`` holds those of the declared
``fields`` that the job has, ``fields`` of a template those of the declared ``replica_fields`` that its replica spec
has; their values are not validated. ``containers`` are the names of the containers of the job's own template,
``limits`` the resources that they limit, ``processors`` the CPU limits of those without devices, rounded up,
``service_account`` its serviceAccountName. A template with a security context also has ``security``
(:mod:`.security_context`). ``files`` are the texts of the
role's files, ``settings`` what the administrator has set. A template whose replica spec has groups, whose replicas have
templates of their own, also has ``groups`` (``{"large": {"replicas": 2, "annotations": {...}, "containers": [...],
...}}``), and the ``task`` of a replica in a group has the name of its ``group``; :func:`template_of` finds the template
of a replica.
The ``objects`` hook of a running job also gets ``created`` and ``running``, by type the indexes of the replicas that
have a pod, and that run (``{"Worker": [0, 2]}``).
``attempt`` counts how often all replicas restarted together (``restartScope: Job``).
``service_domain`` is what makes a ``host`` a name with the namespace, such as ``.team.svc``, where each replica has a
Service; else it is "".
Ranks number all replicas, in the order in which the framework declares its types. ``task`` is the replica for which a
hook computes an environment or a pod; hooks for the whole job get none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import naming, security_context
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.cpu_limits import whole_processors
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping, maps
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import (
    SERVICES_PER_REPLICA,
    SETTING_CLUSTER_DOMAIN,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Cluster, Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, PodTemplate, ReplicaGroup


def build_cluster_spec(job: DLJob, framework: Framework, attempt: int = 0) -> Cluster:
    """The cluster spec without ``task``: the part that is the same for all replicas of ``job``."""
    rank = 0
    replicas: dict[str, list[dict[str, Any]]] = {}
    templates: dict[str, dict[str, Any]] = {}
    for type_ in framework.replica_types:
        group = job.group(type_.name)
        if group is None:
            continue
        members = []
        for index in range(group.replicas):
            members.append({"host": naming.address(job, group.type, index), "port": group.port, "rank": rank})
            rank += 1
        replicas[group.type] = members
        templates[group.type] = _template(group, framework)
    return {
        "job": {
            "name": job.name,
            "namespace": job.namespace,
            "uid": job.uid,
            "kind": job.kind,
            "api_version": job.api_version,
            "runtime_id": job.runtime_id,
            "mode": job.mode,
            "form": job.flavor.status,
            "version": job.flavor.version,
        },
        "replicas": replicas,
        "templates": templates,
        "spec": {**job.options, **job.object_options},
        "files": framework.files,
        "settings": framework.settings,
        "service_domain": _service_domain(job, framework),
        "total": rank,
        "attempt": attempt,
    }


def _service_domain(job: DLJob, framework: Framework) -> str:
    if job.services != SERVICES_PER_REPLICA:
        return ""
    domain = framework.settings.get(SETTING_CLUSTER_DOMAIN)
    return f".{job.namespace}.svc.{domain}" if domain else f".{job.namespace}.svc"


def _template(group: ReplicaGroup, framework: Framework) -> dict[str, Any]:
    """Of a template only what hooks may depend on. It may be invalid: the hook of a template runs before validation."""
    *groups, own = group.templates
    made = {**_content(own, framework), "fields": dict(group.fields)}
    if groups:
        made["groups"] = {one.group: {"replicas": len(one.indexes), **_content(one, framework)} for one in groups}
    return made


def _content(template: PodTemplate, framework: Framework) -> dict[str, Any]:
    metadata, spec = as_mapping(template.template.get("metadata")), as_mapping(template.template.get("spec"))
    containers = maps(spec.get("containers"))
    limited = [one for one in containers if one.get("resources")]
    limits = (as_mapping(as_mapping(one["resources"]).get("limits")) for one in limited)
    processors = {str(one.get("name")): whole_processors(one) for one in limited}
    names = template.containers
    security = security_context.of_template(template.template, names, framework.container_of(names))
    return {
        "annotations": dict(as_mapping(metadata.get("annotations"))),
        "containers": list(template.containers),
        "limits": sorted({str(name) for of_container in limits for name in of_container}),
        "processors": {name: number for name, number in processors.items() if number},
        "service_account": str(spec.get("serviceAccountName") or ""),
        **({"security": security} if security else {}),
    }


def for_replica(cluster: Cluster, type_: str, index: int) -> Cluster:
    """The cluster spec with one replica as its ``task``."""
    task = {"type": type_, "index": index, "rank": cluster["replicas"][type_][index]["rank"]}
    group = _group_of(cluster["templates"][type_].get("groups") or {}, index)
    return {**cluster, "task": {**task, "group": group} if group else task}


def _group_of(groups: Mapping[str, Mapping[str, Any]], index: int) -> str:
    """The name of the group of a replica, "" where it is in none."""
    end = 0
    for name, group in groups.items():
        end += group["replicas"]
        if index < end:
            return name
    return ""


def template_of(cluster: Cluster, type_: str, index: int) -> Mapping[str, Any]:
    """What hooks may depend on of the template of a replica; without ``fields`` where it is in a group."""
    template: Mapping[str, Any] = cluster["templates"][type_]
    groups = template.get("groups") or {}
    group = _group_of(groups, index)
    return groups[group] if group else template


def own_template(cluster: Cluster) -> Mapping[str, Any]:
    """:func:`template_of` the replica ``cluster["task"]``."""
    return template_of(cluster, cluster["task"]["type"], cluster["task"]["index"])


PLACEHOLDERS = frozenset(
    {
        *("job", "namespace", "uid", "runtime_id", "kind", "kind_lower"),
        *("type", "type_lower", "type_upper", "index", "rank", "count", "total"),
        *("host", "port", "rank0_host", "rank0_port"),
    }
)
"""The names that :func:`placeholders` gives a value."""


def placeholders(cluster: Cluster) -> dict[str, object]:
    """The values of the placeholders in declared labels and variables, for the replica ``cluster["task"]``."""
    task, job, replicas = cluster["task"], cluster["job"], cluster["replicas"]
    first = next(member for members in replicas.values() for member in members)  # they are in rank order
    own = replicas[task["type"]][task["index"]]
    return {
        "job": job["name"],
        "namespace": job["namespace"],
        "uid": job["uid"],
        "runtime_id": job["runtime_id"],
        "kind": job["kind"],
        "kind_lower": job["kind"].lower(),
        "type": task["type"],
        "type_lower": task["type"].lower(),
        "type_upper": task["type"].upper(),
        "index": task["index"],
        "rank": task["rank"],
        "count": len(replicas[task["type"]]),
        "total": cluster["total"],
        "host": own["host"],
        "port": own["port"],
        "rank0_host": first["host"],
        "rank0_port": first["port"],
    }
