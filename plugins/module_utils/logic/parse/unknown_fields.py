"""Fields of a job that nothing would read: those in another case, and unknown ones in the metadata of a template.

The schemas refuse most of them. These checks are for jobs that no schema has seen, and for clients that do not validate
strictly. They hold for a job that has not started: one that runs keeps its pods, whatever an earlier release ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_list, as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import ApiFlavor

_OF_SPEC = (
    *("jobMode", "schedulerName", "terminationPolicy", "successPolicy", "cleanPodPolicy", "cleanupPodPolicy"),
    "runPolicy",
)
_OF_ENTRY = ("replicas", "restartPolicy", "template", "groups")
OF_METADATA = frozenset(
    {
        *("annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers"),
        *("generateName", "generation", "labels", "managedFields", "name", "namespace", "ownerReferences"),
        *("resourceVersion", "selfLink", "uid"),
    }
)
"""The fields of an ObjectMeta."""


def unknown_fields(
    resource: Mapping[str, Any], entries: Iterable[tuple[str, str, Any]], flavor: ApiFlavor
) -> Iterator[str]:
    """The errors of a job that has not started. ``entries`` are its replica specs: the path, the type and the spec."""
    if as_mapping(resource.get("status")).get("specHash"):
        return
    elastic = [flavor.elastic.field] if flavor.elastic else []
    fields = (*flavor.replicas_fields, *flavor.runtime_id_fields, *flavor.spec_fields, *flavor.object_fields)
    yield from _in_another_case(as_mapping(resource.get("spec")), "spec", (*_OF_SPEC, *fields, *elastic))
    own = [name for names in flavor.replica_fields.values() for name in names]
    for path, _, entry in entries:
        spec = as_mapping(entry)
        yield from _in_another_case(spec, path, (*_OF_ENTRY, flavor.type_field, *flavor.port_fields, *own))
        yield from _of_template(spec, path)
        for number, group in enumerate(as_list(spec.get("groups"))):
            yield from _of_template(as_mapping(group), f"{path}.groups[{number}]")


def _in_another_case(holder: Mapping[str, Any], path: str, known: Iterable[str]) -> Iterator[str]:
    names = set(known)
    unknown = [name for name in holder if name not in names]
    folded = {name.casefold(): name for name in names} if unknown else {}
    for name in unknown:
        right = folded.get(str(name).casefold())
        if right:
            yield f"{path}.{name} is not known in this spelling: write {right}"


def _of_template(holder: Mapping[str, Any], path: str) -> Iterator[str]:
    for name in as_mapping(as_mapping(holder.get("template")).get("metadata")):
        if name not in OF_METADATA:
            yield f"{path}.template.metadata.{name} is unknown: a template has labels and annotations"
