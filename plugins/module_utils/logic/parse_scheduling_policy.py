"""Parses ``runPolicy.schedulingPolicy``, which only a gang scheduler uses, except for ``priorityClass``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic import quantities
from ansible_collections.dljob.operator.plugins.module_utils.logic.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.values.job import SchedulingPolicy

PATH = "spec.runPolicy.schedulingPolicy"
_MOST = 2**31 - 1
_SCHEDULERS = ("scheduling.k8s.io/", "scheduling.x-k8s.io/", "scheduling.volcano.sh/", "volcano.sh/")
"""Prefixes of the annotations that the job's PodGroup gets; training-operator copies all annotations of the job."""


def parse(policy: Any, annotations: Any, errors: list[str]) -> SchedulingPolicy:
    """The policy, with those of the job's ``annotations`` that schedulers read. Adds what is wrong to ``errors``."""
    if policy is not None and not isinstance(policy, Mapping):
        errors.append(f"{PATH} must be a map")
    given = as_mapping(policy)
    return SchedulingPolicy(
        min_available=_number(given, "minAvailable", errors),
        queue=_queue(given.get("queue"), errors),
        min_resources=_resources(given.get("minResources"), errors),
        schedule_timeout_seconds=_number(given, "scheduleTimeoutSeconds", errors),
        annotations={
            name: value
            for name, value in as_mapping(annotations).items()
            if name.startswith(_SCHEDULERS) and isinstance(value, str)
        },
    )


def _number(policy: Mapping[str, Any], name: str, errors: list[str]) -> int | None:
    value = policy.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        errors.append(f"{PATH}.{name} must be a whole number between 0 and {_MOST}, not {str(value)[:40]!r}")
        return None
    return value


def _queue(value: Any, errors: list[str]) -> str | None:
    if value is not None and not isinstance(value, str):
        errors.append(f"{PATH}.queue must be a string, not {str(value)[:40]!r}")
        return None
    return value


def _resources(value: Any, errors: list[str]) -> Mapping[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        errors.append(f"{PATH}.minResources must be a map of quantities by name")
    found = {name: amount for name, amount in as_mapping(value).items() if amount is not None}
    errors.extend(quantities.malformed_values(found, f"{PATH}.minResources"))
    return found
