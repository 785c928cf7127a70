"""Parses ``runPolicy.schedulingPolicy``. Only a gang scheduler uses it, except for ``priorityClass``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.fields import optional_integer, text
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import quantities
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.values.job import SchedulingPolicy

PATH = "spec.runPolicy.schedulingPolicy"
_SCHEDULERS = ("scheduling.k8s.io/", "scheduling.x-k8s.io/", "scheduling.volcano.sh/", "volcano.sh/")
"""Prefixes of the annotations that the job's PodGroup gets; training-operator copies all annotations of the job."""


def parse(policy: Any, annotations: Any, errors: list[str]) -> SchedulingPolicy:
    """The policy, with those of the job's ``annotations`` that schedulers read. Adds what is wrong to ``errors``."""
    if policy is not None and not isinstance(policy, Mapping):
        errors.append(f"{PATH} must be a map")
    given = as_mapping(policy)

    def number(name: str) -> int | None:
        return optional_integer(given.get(name), f"{PATH}.{name}", 0, errors)

    return SchedulingPolicy(
        min_available=number("minAvailable"),
        queue=text(given.get("queue"), f"{PATH}.queue", errors),
        priority_class=text(given.get("priorityClass"), f"{PATH}.priorityClass", errors),
        min_resources=_resources(given.get("minResources"), errors),
        schedule_timeout_seconds=number("scheduleTimeoutSeconds"),
        annotations={
            name: value
            for name, value in as_mapping(annotations).items()
            if name.startswith(_SCHEDULERS) and isinstance(value, str)
        },
    )


def _resources(value: Any, errors: list[str]) -> Mapping[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        errors.append(f"{PATH}.minResources must be a map of quantities by name")
    found = {name: amount for name, amount in as_mapping(value).items() if amount is not None}
    errors.extend(quantities.malformed_values(found, f"{PATH}.minResources"))
    return found
