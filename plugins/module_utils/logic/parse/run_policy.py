"""Parses ``spec.runPolicy``, and the fields that other flavors have in its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import (
    failure_policy,
    managers,
    restarts_within,
    scheduling_policy,
    stall_policy,
    startup_policy,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.fields import Parsing, optional_integer, text
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.shared.progress import RANK_CHOICES
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import (
    CLEAN_POLICIES,
    RESTART_SCOPE_REPLICA,
    RESTART_SCOPES,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.job import ReplicaGroup, RunPolicy

PATH = "spec.runPolicy"


def parse(parsing: Parsing, groups: Sequence[ReplicaGroup], metadata: Mapping[str, Any]) -> RunPolicy:
    """The policy of the job with these ``groups`` and this ``metadata``."""
    options, framework, errors = parsing.options, parsing.framework, parsing.errors
    given = options.get("runPolicy")
    if given is not None and not isinstance(given, Mapping):
        errors.append(f"{PATH} must be a map")
    policy = as_mapping(given)
    suspend = policy.get("suspend")
    if suspend is not None and not isinstance(suspend, bool):
        errors.append(f"{PATH}.suspend must be true or false, not {suspend!r}")

    def number(name: str, least: int = 0) -> int | None:
        return optional_integer(policy.get(name), f"{PATH}.{name}", least, errors)

    ttl = number("ttlSecondsAfterFinished")
    force_delete_after = number("forceDeleteAfterSeconds")
    return RunPolicy(
        clean_pod_policy=_clean_pod_policy(policy, parsing),
        ttl_seconds_after_finished=None if managers.is_copy_of_multikueue(metadata) else ttl,
        active_deadline_seconds=number("activeDeadlineSeconds", 1),
        backoff_limit=number("backoffLimit"),
        pending_timeout_seconds=number("pendingTimeoutSeconds", 1),
        force_delete_after_seconds=(
            framework.force_delete_after_seconds if force_delete_after is None else force_delete_after
        ),
        suspend=suspend is True,
        managed_by=text(policy.get("managedBy"), f"{PATH}.managedBy", errors),
        scheduler_name=text(options.get("schedulerName"), "spec.schedulerName", errors),
        scheduling=scheduling_policy.parse(policy.get("schedulingPolicy"), metadata.get("annotations"), errors),
        restart_scope=_restart_scope(policy, errors),
        max_restarts_per_replica=number("maxRestartsPerReplica"),
        restarts_within=restarts_within.parse(policy.get("restartsWithin"), errors),
        failure_rules=failure_policy.parse(policy.get("podFailurePolicy"), errors),
        progress=_progress(policy, errors),
        stall_policy=stall_policy.parse(policy.get("stallPolicy"), errors),
        starts_after=startup_policy.parse(
            policy.get("startupPolicy"),
            {
                type_.name: parsing.flavor.starts_after(type_, options, in_gang=False)
                for group in groups
                if (type_ := framework.type_named(group.type))
            },
            framework,
            errors,
        ),
    )


def _clean_pod_policy(policy: Mapping[str, Any], parsing: Parsing) -> str:
    clean, default = policy.get("cleanPodPolicy"), parsing.flavor.default_clean_pod_policy
    for name in ("cleanPodPolicy", "cleanupPodPolicy"):  # v1beta's field, and mx-operator's spelling
        clean = parsing.options.get(name) if clean is None else clean
    clean = default if clean in (None, "") else clean
    if clean not in CLEAN_POLICIES:
        parsing.errors.append(f"{PATH}.cleanPodPolicy: {clean!r} is none of {', '.join(CLEAN_POLICIES)}")
        return default
    return str(clean)


def _progress(policy: Mapping[str, Any], errors: list[str]) -> str:
    ranks = policy.get("progress") or ""
    if ranks and ranks not in RANK_CHOICES:
        errors.append(f"{PATH}.progress: {ranks!r} is none of {', '.join(RANK_CHOICES)}")
        return ""
    return str(ranks)


def _restart_scope(policy: Mapping[str, Any], errors: list[str]) -> str:
    scope = policy.get("restartScope") or RESTART_SCOPE_REPLICA
    if scope not in RESTART_SCOPES:
        errors.append(f"{PATH}.restartScope: {scope!r} is none of {', '.join(RESTART_SCOPES)}")
        return RESTART_SCOPE_REPLICA
    return str(scope)
