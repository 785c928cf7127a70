"""What the job's pod templates set in vain, because the operator sets it for each pod itself.

The result is the same for every reconcile of a spec: it compares each template with the pods of its first and its last
replica. What differs between replicas differs between these. A setting with the operator's own value is not ignored.
Its length does not depend on the number of replicas or of settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import for_replica
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import container_env, pods
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.host_names import LONGEST_FULL_NAME, ends
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, PodTemplate, ReplicaGroup
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import PodToCreate

NAMES = 10
"""Names of one kind in the text of a replica type."""
NAME_LENGTH = 64
TEXT_LENGTH = 500
"""Characters of the text of a replica type."""
_FQDN = f"setHostnameAsFQDN (the full name has more than {LONGEST_FULL_NAME} characters)"
Found = dict[str, dict[str, None]]
"""By kind of setting the names, in order."""


def find(job: DLJob, context: pods.PodContext) -> dict[str, str]:
    """By replica type, the settings of its templates that the operator ignores, as a text; types without any are
    left out."""
    texts: dict[str, str] = {}
    for group in job.groups:
        found: Found = {}
        for template in group.templates:
            for index in ends(template):
                if not _may_be_ignored(group, template, index, context):
                    break
                _compare(job, group, template, pods.build_pod(job, PodToCreate(group, index, 0), context), found)
        if found:
            texts[group.type] = _text(found)
    return texts


def message(by_type: Mapping[str, str]) -> str:
    """The sentence of the Event."""
    return "The operator sets these itself and ignores the template's: " + "; ".join(
        f"{type_}: {text}" for type_, text in by_type.items()
    )


def _may_be_ignored(group: ReplicaGroup, template: PodTemplate, index: int, context: pods.PodContext) -> bool:
    """A quick check, since most templates set nothing that the operator sets."""
    metadata, spec = as_mapping(template.template.get("metadata")), template.template["spec"]
    if any(metadata.get(name) for name in ("labels", "annotations")):
        return True
    if any(spec.get(name) for name in ("hostname", "subdomain", "restartPolicy", "setHostnameAsFQDN")):
        return True
    own = {str(entry.get("name")) for container in spec["containers"] for entry in container.get("env") or ()}
    environment = context.framework.hooks.environment if own else None
    return bool(environment and own.intersection(environment(for_replica(context.cluster, group.type, index))))


def _compare(job: DLJob, group: ReplicaGroup, template: PodTemplate, pod: Mapping[str, Any], found: Found) -> None:
    """Add to ``found`` what the ``pod`` of a replica has otherwise than its template."""
    spec, metadata = template.template["spec"], as_mapping(template.template.get("metadata"))
    made = {container.get("name"): container for container in pod["spec"]["containers"]}
    for container in spec["containers"]:
        own, env = container.get("env") or (), made[container.get("name")].get("env") or ()
        _add(found, f"env of container {container.get('name')}", container_env.replaced(own, env))
    for field in ("labels", "annotations"):
        given, present = as_mapping(metadata.get(field)), pod["metadata"][field]
        _add(found, field, (name for name, text in given.items() if (present.get(name) or "") != (text or "")))
    _add(found, "", (name for name in ("hostname", "subdomain") if _differs(spec, pod["spec"], name)))
    policy = spec.get("restartPolicy")
    if policy not in (None, "", group.restart_policy, pods.restart_policy(job, group)):
        _add(found, "", ["restartPolicy"])
    if _differs(spec, pod["spec"], "setHostnameAsFQDN"):
        _add(found, "", [_FQDN])


def _differs(spec: Mapping[str, Any], made: Mapping[str, Any], name: str) -> bool:
    return bool(spec.get(name)) and made.get(name) != spec[name]


def _add(found: Found, kind: str, names: Iterable[str]) -> None:
    if added := dict.fromkeys(names):
        found.setdefault(kind, {}).update(added)


def _text(found: Found) -> str:
    parts = []
    for kind, names in found.items():
        shown = ", ".join(_clip(name, NAME_LENGTH) for name in list(names)[:NAMES])
        more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
        parts.append(f"{kind}: {shown}{more}" if kind else shown)
    return _clip("; ".join(parts), TEXT_LENGTH)


def _clip(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."
