"""Merges the pod hook's defaults into the template of a replica. The job's own template takes precedence.

Only in labels the hook does, which :mod:`..objects.pods` sees to.

Mappings are merged key by key. Lists whose elements have a name (containers, initContainers, volumes, env, ports) or a
mountPath (volumeMounts) are merged element by element, the template's elements first. Of other lists and of plain
values, the template's are kept. A container's ``command`` and ``args`` are one value: where the template has one of
them, the hook's are not used. A ``securityContext`` is one value too, since its fields may exclude one another.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import build_cluster_spec
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Cluster, Framework, PodDefaults
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, ReplicaGroup

_KEYS = {
    **dict.fromkeys(("containers", "initContainers", "volumes", "env", "ports", "imagePullSecrets"), "name"),
    "volumeMounts": "mountPath",
}
"""By field, the key that identifies an element of its list."""
_COMMAND = ("command", "args")
_SECURITY = "securityContext"
_ABSENT_IF_EMPTY = ("serviceAccountName", *_COMMAND)
"""Fields whose empty text or list means to Kubernetes that they are not given."""


def defaults_of(hook: PodDefaults, cluster: Cluster) -> Mapping[str, Any]:
    """The hook's defaults for the replica ``cluster["task"]``; raises :class:`InvalidFramework`."""
    defaults = hook(cluster)
    if not isinstance(defaults, Mapping) or not set(defaults) <= {"metadata", "spec"}:
        raise InvalidFramework(f"hooks.pod must return a mapping with metadata and spec, not {defaults!r}")
    return defaults


def merge(template: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """``template`` with the ``defaults`` that it lacks. Neither is changed."""
    merged = dict(template)
    for name, default in defaults.items():
        own = merged.get(name)
        if name in _ABSENT_IF_EMPTY and own in ("", []):
            own = None
        if name in _COMMAND and any(template.get(one) for one in _COMMAND):
            continue
        if own is None:
            merged[name] = default
        elif name == _SECURITY:
            merged[name] = own or default
        elif isinstance(own, Mapping) and isinstance(default, Mapping):
            merged[name] = merge(own, default)
        elif name in _KEYS and isinstance(own, list) and isinstance(default, list):
            merged[name] = _merge_list(own, default, _KEYS[name])
    return merged


def _merge_list(own: Sequence[Any], defaults: Sequence[Mapping[str, Any]], key: str) -> list[Any]:
    by_key = {default[key]: default for default in defaults}
    merged = []
    for element in own:
        value = element.get(key) if isinstance(element, Mapping) else None
        default = by_key.pop(value, None) if isinstance(value, str) else None
        merged.append(element if default is None else merge(element, default))
    return [*merged, *by_key.values()]


def complete(job: DLJob, framework: Framework) -> DLJob:
    """``job`` with the containers that its templates may lack, where the pod hook supplies them.

    Of the defaults only names and images of containers are added here: the rest may differ by replica, and the spec
    hash covers the result, so that a new release of a hook leaves running pods alone. A template that is malformed
    stays as it is, for validation.
    """
    hook, optional = framework.hooks.pod, job.flavor.template_optional
    if hook is None or not any(group.type in optional for group in job.groups):
        return job
    cluster = build_cluster_spec(job, framework)

    def completed(group: ReplicaGroup) -> ReplicaGroup:
        if group.type not in optional:
            return group
        # the template is the same for all replicas, so it is asked for the first, even where there is none
        task = {"type": group.type, "index": 0, "rank": 0}
        containers = as_mapping(defaults_of(hook, {**cluster, "task": task}).get("spec")).get("containers") or ()
        if not containers:
            return group
        skeleton = {"containers": [{k: c[k] for k in ("name", "image") if k in c} for c in containers]}
        spec = group.template.get("spec")
        own = as_mapping(spec).get("containers")
        if not (spec is None or isinstance(spec, Mapping)) or not (own is None or isinstance(own, list)):
            return group
        template = merge(group.template, {"spec": skeleton})
        return dataclasses.replace(group, template=template, is_completed=True)

    return dataclasses.replace(job, groups=tuple(map(completed, job.groups)))
