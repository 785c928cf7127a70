"""What podFailurePolicy, the limits and the start order of a job ask for, from their documentation and not by the code
of the product."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.spec_hash import spec_hash
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.pod_ends import has_failed
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import end_order
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import PodState
from ansible_collections.dljob.operator.plugins.module_utils.values.pod_failure_policy import (
    FailureRule,
    OnExitCodes,
    OnPodConditions,
)

from support.builders import NOW

COUNTED = ("Count", "Restart", "RestartJob")
"""Actions after which even a disruption counts."""
Rank = tuple[str, int]
"""Type in lower case, and index."""


def action(job: DLJob, pod: PodState) -> str:
    """The action of the first rule that matches the failure of ``pod``, "" without a failure or a match."""
    failed = _is_taken(pod) if pod.deleting else has_failed(pod)
    return next((rule.action for rule in job.run_policy.failure_rules if failed and _matches(rule, pod)), "")


def _is_taken(pod: PodState) -> bool:
    """Whether the cluster deletes a pod whose program has not succeeded."""
    is_over = pod.phase == "Succeeded" or (pod.ended is not None and pod.ended.code == 0)
    return pod.deleting != "" and pod.disrupted and not is_over


def _matches(rule: FailureRule, pod: PodState) -> bool:
    requirement = rule.requirement
    if isinstance(requirement, OnPodConditions):
        return bool(set(requirement.conditions) & set(pod.conditions))
    if pod.deleting or pod.ended is None or not pod.terminated or not pod.ended.code:
        return False
    value = pod.ended.code if isinstance(requirement, OnExitCodes) else pod.ended.reason
    return (value in requirement.values) == (requirement.operator == "In")


def may_follow(status: Mapping[str, Any], pod: PodState) -> bool:
    """Whether the failure of ``pod`` may be due to the loss of another replica, so that rules and exit codes do not
    fail the job: by ``lastLoss`` of the ``status``, or because a report of such a loss may still come."""
    if pod.deleting or pod.disrupted or pod.ended is None:
        return False
    ended = clock.parse(pod.ended.finished_at)
    assert ended is not None
    return (NOW - ended).total_seconds() < end_order.REPORT_LAG or is_consequence(status, pod)


def is_consequence(status: Mapping[str, Any], pod: PodState) -> bool:
    """Whether the ``status`` says that ``pod`` failed because of a loss that a retry may cure."""
    loss = status.get("lastLoss") or {}
    offset = loss.get("consequences", {}).get(f"{pod.type}-{pod.index}")
    began, ended = clock.parse(loss.get("time")), clock.parse(pod.ended.finished_at) if pod.ended else None
    if offset is None or began is None or ended is None or not (loss["retryable"] or offset < 0):
        return False
    return (ended - began).total_seconds() == offset


def is_lost(job: DLJob, pod: PodState) -> bool:
    """Whether the cluster deletes a pod that has begun, and whose replica nothing may start again: Never, in the kinds
    whose replicas all count, without a rule and without a restart of the whole job."""
    policy = {group.type.lower(): group.restart_policy for group in job.groups}.get(pod.type)
    return (
        (_is_taken(pod) and pod.phase != "Pending")
        and (policy == "Never" and pod.type != job.elastic_type.lower() and pod.batch_job is None)
        and (job.flavor.fails_by == "any" and job.run_policy.restart_scope == "Replica")
        and action(job, pod) in ("", "Count")
    )


def counter(job: DLJob, pod: PodState) -> str:
    """The field of the status that counts the failure of ``pod``, "" where none does. ``job`` stands for the count of
    the restarts of the whole job."""
    decided = action(job, pod)
    if decided == "RestartJob":
        return "job"
    if decided in COUNTED:
        return "retries"
    if pod.deleting or pod.disrupted or not has_failed(pod):
        return ""
    return "ignoredRetries" if decided == "Ignore" else "retries"


def attempts(job: DLJob, pods: Collection[PodState], recorded: int) -> dict[Rank, str]:
    """The annotation of the pods of the present attempt; the action RestartJob begins attempts.

    The newest pods show the attempt where the status is not written yet.
    """
    of_type = {group.type.lower(): spec_hash(job, group) for group in job.groups}
    hashes = {
        (group.type.lower(), index): spec_hash(job, group, group.template_of(index)) for group, index in job.tasks()
    }
    shown = (
        attempt_of(pod.spec_hash, hashes.get((pod.type, pod.index), of_type.get(pod.type, "")))
        for pod in pods
        if not pod.deleting
    )
    newest = max([recorded, *shown])
    return {rank: f"{text}-{newest}" if newest else text for rank, text in hashes.items()}


def attempt_of(annotation: str, of_spec: str) -> int:
    """The attempt in the annotation of a pod of the spec with that hash; 0 for a pod of another spec."""
    spec, _, attempt = annotation.partition("-")
    return int(attempt or 0) if spec == of_spec else 0


def held_back(
    job: DLJob, framework: Framework, pods: Collection[PodState], completed: Mapping[str, set[int]]
) -> dict[str, str]:
    """The types of which no pod may be created, each with a type that it waits for. ``pods`` are the present ones."""
    found: dict[str, str] = {}
    for type_, other, state in _dependencies(job, framework):
        group = job.group(other)
        reached = {
            (pod.type, pod.index)
            for pod in pods
            if not pod.deleting
            and state != "completed"
            and (pod.is_ready if state == "ready" else pod.phase == "Running")
        }
        reached |= {(other.lower(), index) for index in completed.get(other.lower(), ())}
        if group and any((other.lower(), index) not in reached for index in range(group.replicas)):
            found[type_] = other
    return found


def _dependencies(job: DLJob, framework: Framework) -> Iterator[tuple[str, str, str]]:
    for type_ in framework.replica_types:
        for others in (type_.starts_after, job.run_policy.starts_after.get(type_.name, {})):
            yield from ((type_.name, other, state) for other, state in others.items())
