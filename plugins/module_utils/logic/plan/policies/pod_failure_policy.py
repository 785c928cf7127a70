"""``runPolicy.podFailurePolicy``: the rule that decides about a failed pod, with the terms of batch/v1.

The rules are examined in their order, and the first that matches decides. A pod that none matches is treated as if
there were no policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.dljob.operator.plugins.module_utils.values.observed import ContainerFailure, PodState
from ansible_collections.dljob.operator.plugins.module_utils.values.pod_failure_policy import (
    ACTION_COUNT,
    ACTION_RESTART,
    ACTION_RESTART_JOB,
    OPERATOR_IN,
    FailureRule,
    OnExitCodes,
    OnPodConditions,
    Requirement,
)

COUNTED = (ACTION_COUNT, ACTION_RESTART, ACTION_RESTART_JOB)
"""The actions after which the failure counts for ``backoffLimit``, even where the cluster ended the pod."""


@dataclass(frozen=True, slots=True)
class Match:
    """A rule that matches a pod."""

    index: int
    """Of the rule in the list."""
    action: str
    container: ContainerFailure | None = None
    """The container that matches; ``None`` where a condition of the pod does."""
    condition: tuple[str, str] | None = None
    """The type and the status of the condition that matches."""


def first_match(rules: Sequence[FailureRule], pod: PodState) -> Match | None:
    """The first of ``rules`` that matches ``pod``, which has failed or which the cluster takes away.

    Of a pod that is being deleted only the conditions count: the exit code of a process that got SIGTERM is no
    error of its own.
    """
    for index, rule in enumerate(rules):
        if isinstance(rule.requirement, OnPodConditions):
            condition = _condition(rule.requirement, pod)
            if condition is not None:
                return Match(index, rule.action, condition=condition)
        elif not pod.deleting:
            container = _container(rule.requirement, pod)
            if container is not None:
                return Match(index, rule.action, container=container)
    return None


def _condition(requirement: OnPodConditions, pod: PodState) -> tuple[str, str] | None:
    return next((one for one in requirement.conditions if one in pod.conditions), None)


def _container(requirement: Requirement, pod: PodState) -> ContainerFailure | None:
    """The first failed container that meets ``requirement``. A container that ended with 0 meets none."""
    if isinstance(requirement, OnPodConditions):
        return None
    for failed in pod.failed_containers:
        if requirement.container not in ("", failed.name):
            continue
        value = failed.code if isinstance(requirement, OnExitCodes) else failed.reason
        if (value in requirement.values) == (requirement.operator == OPERATOR_IN):
            return failed
    return None
