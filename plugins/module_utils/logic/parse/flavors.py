"""Which API flavor a job has.

A flavor follows from the job's API group and the field that holds its replicas. The version of a response does not
matter, because a CRD may serve one object in several versions. Only where two versions of a kind use the same field
does the version in which the job was created decide. ``status.apiVersion`` has it once the operator has seen the job;
before that the API server's notes of who has written what (:mod:`..shared.created_version`) tell it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.shared.created_version import created_version
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import STATUS_API_VERSION
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import ApiFlavor, Framework


def flavor_of(resource: Mapping[str, Any], framework: Framework) -> ApiFlavor:
    """The flavor of ``resource``; raises :class:`InvalidJob`.

    Without a known field of replicas it is the last flavor of the group (its newest), so that errors name its fields.
    """
    group = str(resource.get("apiVersion", "")).partition("/")[0]
    candidates = [flavor for flavor in framework.flavors if group in flavor.groups]
    if not candidates:
        known = ", ".join(sorted({g for flavor in framework.flavors for g in flavor.groups}))
        raise InvalidJob(f"apiVersion: {framework.name} has no jobs of the group {group!r}; its groups are {known}")
    candidates = _of_its_version(resource, candidates)
    spec = resource.get("spec")
    used = {name: flavor for flavor in reversed(candidates) for name in flavor.replicas_fields if holds(spec, name)}
    if len(used) > 1:
        raise InvalidJob(f"spec has {' and '.join(sorted(used))}, which are spellings of one field: keep one of them")
    return next(iter(used.values()), candidates[-1])


def holds(spec: Any, field: str) -> bool:
    """Whether ``spec`` has that field of replicas, which is "" where the spec itself is the list."""
    return isinstance(spec, list) if field == "" else isinstance(spec, Mapping) and field in spec


def _of_its_version(resource: Mapping[str, Any], candidates: Sequence[ApiFlavor]) -> list[ApiFlavor]:
    """Those of ``candidates`` that a job created in the version of ``resource`` may have."""
    versions = {flavor.version for flavor in candidates if flavor.version}
    recorded = as_mapping(resource.get("status")).get(STATUS_API_VERSION)
    found = (_version(one) for one in (recorded, created_version(resource), resource["apiVersion"]))
    version = next((one for one in found if one in versions), "")
    return [flavor for flavor in candidates if flavor.version in ("", version)] or list(candidates)


def _version(api_version: Any) -> str:
    return str(api_version or "").rpartition("/")[2]


def errors_of_versions(options: Mapping[str, Any], flavor: ApiFlavor, framework: Framework) -> Iterator[str]:
    """The errors of a job that has fields of another version than its own.

    All versions of a CRD keep the fields of all, since a write through one version would else drop those of another.
    """
    own = {*flavor.spec_fields, *flavor.object_fields}
    for other in framework.flavors:
        if not other.version or other.version == flavor.version or other.groups != flavor.groups:
            continue
        version = f"{flavor.groups[0]}/{other.version}"
        for name in sorted({*other.spec_fields, *other.object_fields} - own):
            if options.get(name) not in (None, ""):
                yield (
                    f"spec.{name} is a field of {version}, and the job was created as {flavor.version}: remove it, or "
                    f"delete the job and create it with the apiVersion {version}"
                )
