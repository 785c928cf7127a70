"""Reads what a plan needs of a job whose spec is invalid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import naming
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import managers
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.values.job import JobRecord, RunPolicy


def read(resource: Mapping[str, Any]) -> JobRecord:
    """The record of ``resource``. A field that is invalid itself counts as missing."""
    metadata, status = as_mapping(resource.get("metadata")), as_mapping(resource.get("status"))
    generation = metadata.get("generation")
    ttl = managers.run_policy_of(resource).get("ttlSecondsAfterFinished")
    is_copy = managers.is_copy_of_multikueue(metadata)
    return JobRecord(
        kind=str(resource.get("kind") or ""),
        name=str(metadata.get("name") or ""),
        generation=generation if isinstance(generation, int) else 0,
        runtime_id=str(status.get("runtimeId") or naming.runtime_id(str(metadata.get("uid") or ""))),
        run_policy=RunPolicy(
            suspend=is_suspended(resource),
            ttl_seconds_after_finished=None if is_copy else _seconds(ttl),
        ),
        status=status,
        is_queued=managers.is_queued(metadata),
    )


def is_suspended(resource: Mapping[str, Any]) -> bool:
    """Whether the job, which may be invalid, is suspended."""
    return managers.run_policy_of(resource).get("suspend") is True


def _seconds(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
