"""The plan for an invalid job: status and Event, and the deletion of its pods once it is suspended.

It works on the raw object, because the job cannot be parsed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import naming
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import owned_objects
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe import adoption
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import managers
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import suspension
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import conditions, status_builder
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import (
    clip,
    is_finished,
    outcome,
)
from ansible_collections.dljob.operator.plugins.module_utils.shared.event import EventNote
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import IMMEDIATE, Deletion, Fact, Plan, presume

_NOTHING = Observed()


def plan_invalid(
    resource: Mapping[str, Any],
    framework: Framework,
    problems: Sequence[str],
    now: datetime,
    observed: Observed = _NOTHING,
) -> Plan:
    """Report the errors once per edit. A running job keeps the pods of its last valid spec; a new job is Failed.

    Suspended, also by Kueue, it loses them like a valid job, and it is Failed if it is resumed with these errors. One
    that failed before it began has none: those that an operator with an older spec in its cache has created are
    deleted.
    ``observed`` is read for :func:`may_have_pods` only. A job that another controller runs is left alone.
    """
    if managers.names_another(resource, framework):
        return Plan()
    metadata, old = as_mapping(resource.get("metadata")), as_mapping(resource.get("status"))
    generation = metadata.get("generation")
    generation = generation if isinstance(generation, int) else 0
    is_queued = managers.is_queued(metadata)
    never_began = _has_failed_before_it_began(old)
    pods = adoption.all_deletions(observed) if never_began else ()
    surplus = _active_objects(observed) if never_began else ()
    if is_finished(old, generation, is_queued=is_queued):
        left = _time_to_live(resource, old, now)  # an edit of a finished job has no other effect
        if left is not None and left <= 0:
            return Plan(delete_job=True)
        deletions = (*pods, *surplus)
        wait = IMMEDIATE if pods else left
        return Plan(deletions=deletions, requeue_after=wait, presumes=presume({Fact.SPEC_IS_CURRENT: bool(deletions)}))
    message = clip("; ".join(problems))
    reason = f"{resource.get('kind')}FailedValidation"
    fields: dict[str, Any] = {
        **old,
        "runtimeId": old.get("runtimeId") or naming.runtime_id(str(metadata.get("uid") or "")),
        "observedGeneration": generation,
    }
    begun = _begun(resource, observed, now) if outcome(old) is None else {}
    fields |= begun
    has_begun = bool(fields.get("startTime")) and outcome(old) is None
    if has_begun and is_suspended(resource) and not begun:
        return _suspended(resource, fields, "; ".join(problems), observed, now)
    if has_begun and not was_suspended(fields):
        fields["reason"] = clip(f"the spec is invalid, and pods of the last valid spec stay: {message}")
    else:
        if is_queued:
            message = clip(f"{message}; {managers.RECREATE}")
        others = [
            x
            for x in conditions.read_conditions(old)
            if x.get("message") == message or x.get("type") != c.CONDITION_FAILED
        ]
        fields |= {
            "phase": c.PHASE_FAILED,
            "state": c.STATE_FAILED,
            "reason": clip(f"{c.REASON_INVALID}: {message}"),
            "failure": {"reason": c.REASON_INVALID, "message": message},
            "conditions": conditions.set_condition(
                others, conditions.NewCondition(c.CONDITION_FAILED, reason, message), clock.stamp(now)
            ),
        }
    if fields == old:
        return Plan()  # a job that runs on: it has not ended
    left = _time_to_live(resource, fields, now) if outcome(fields) else None
    if begun or pods or surplus:
        left = IMMEDIATE  # recorded before they are deleted: a job without a beginning would fail once they are gone
    return Plan(
        status=fields,
        events=(EventNote("Warning", reason, message),),
        requeue_after=left,
        presumes=presume(
            {
                Fact.PODS_ARE_DELETED: outcome(fields) is not None and may_have_pods(resource),
                Fact.IS_KEPT: suspension.survivors(old, observed),
            }
        ),
    )


def _begun(resource: Mapping[str, Any], observed: Observed, now: datetime) -> dict[str, Any]:
    """What a status lacks of the beginning that the job's pods show; nothing, if it lacks nothing.

    Its write has failed, or was deferred, and an edit has made the job invalid before the next one. ``Suspended`` is
    recorded only after the pods are deleted, so pods are newer.
    """
    status = as_mapping(resource.get("status"))
    live = [pod for pod in observed.pods if not pod.deleting]
    pods = live if was_suspended(status) else observed.pods
    first = min((pod.created for pod in pods if pod.created), default="")
    if not first or (status.get("startTime") and not was_suspended(status)):
        return {}
    begun: dict[str, Any] = {"phase": c.PHASE_CREATING, "startTime": first}
    if was_suspended(status):
        kind, name = resource.get("kind"), as_mapping(resource.get("metadata")).get("name")
        message = f"{kind} {name} is resumed."
        resumed = conditions.NewCondition(c.CONDITION_SUSPENDED, f"{kind}Resumed", message, "False")
        before = conditions.read_conditions(status)
        begun |= {"state": c.STATE_RUNNING, "conditions": conditions.set_condition(before, resumed, clock.stamp(now))}
    return begun


def may_have_pods(resource: Mapping[str, Any]) -> bool:
    """Whether the plan for the job, if it is invalid, depends on its pods: they say when it began, if its status does
    not; one that is suspended loses them, and one that has failed; and of one that was suspended, they say whether it
    has been resumed."""
    status = as_mapping(resource.get("status"))
    is_recorded = bool(status.get("startTime")) or outcome(status) is not None
    return not is_recorded or is_suspended(resource) or was_suspended(status) or _has_failed_before_it_began(status)


def _has_failed_before_it_began(status: Mapping[str, Any]) -> bool:
    """Whether the job was invalid from its beginning, or since it was suspended: then no pod of it is to be kept.

    Of one that ran, that Kubernetes refused a pod, and that an edit then made invalid, cleanPodPolicy has decided.
    """
    is_invalid = as_mapping(status.get("failure")).get("reason") == c.REASON_INVALID
    return is_invalid and outcome(status) == c.STATE_FAILED and (not status.get("startTime") or was_suspended(status))


def is_suspended(resource: Mapping[str, Any]) -> bool:
    """Whether the job, which may be invalid, is suspended."""
    return managers.run_policy_of(resource).get("suspend") is True


def was_suspended(status: Mapping[str, Any]) -> bool:
    """Whether that status says that the job is suspended."""
    return conditions.is_condition_true(conditions.read_conditions(status), c.CONDITION_SUSPENDED)


def _suspended(
    resource: Mapping[str, Any], fields: dict[str, Any], problem: str, observed: Observed, now: datetime
) -> Plan:
    """No pods: the queue, or the administrator, that has suspended the job does not wait for its errors to be mended.

    ``fields`` are those of the status so far. The steps are those of :mod:`.policies.suspension`, as for a valid job.
    """
    old, kind = as_mapping(resource.get("status")), resource.get("kind")
    if suspension.has_completed(old):
        return Plan(status=suspension.without_completed(old), requeue_after=IMMEDIATE)
    gone = adoption.all_deletions(observed)
    if gone:
        return Plan(deletions=gone, requeue_after=IMMEDIATE, presumes=presume({Fact.SPEC_IS_CURRENT: True}))
    message = f"{kind} {as_mapping(resource.get('metadata')).get('name')} is suspended."
    suspended = conditions.NewCondition(c.CONDITION_SUSPENDED, f"{kind}Suspended", message)
    before = conditions.read_conditions(old)
    fields |= {
        "phase": c.PHASE_SUSPENDED,
        "reason": clip(f"the spec is invalid: {problem}"),
        "conditions": conditions.set_condition(before, suspended, clock.stamp(now)),
        **_counts(old),
    }
    for name in status_builder.PROGRESS:
        fields.pop(name, None)
    events = []
    if fields["reason"] != old.get("reason"):
        events.append(EventNote("Warning", f"{kind}FailedValidation", clip(problem)))
    if fields["conditions"] != before:
        events.append(EventNote("Normal", suspended.reason, message))
    return Plan(
        deletions=_active_objects(observed),
        status=None if fields == old else fields,
        events=tuple(events),
        presumes=presume({Fact.PODS_ARE_KNOWN: fields != old}),
    )


def _active_objects(observed: Observed) -> tuple[Deletion, ...]:
    """The deletions of what a job without pods does not need."""
    return tuple(
        owned_objects.deletion(key, found)
        for key, found in observed.owned_objects.items()
        if found.lifetime == c.LIFETIME_ACTIVE and not found.deleting
    )


def _counts(old: Mapping[str, Any]) -> dict[str, Any]:
    """The counts of a job without pods, of which the spec no longer says how many replicas it has.

    Those of v1alpha1's list, which no queue reads, stay.
    """
    by_type = old.get("replicaStatuses")
    if not isinstance(by_type, Mapping):
        return {}
    counted = {
        type_: {name: value for name, value in entry.items() if name == "selector"}
        for type_, entry in by_type.items()
        if isinstance(entry, Mapping)  # else the layout has no types
    }
    _, _, total = str(old.get("replicas") or "").partition("/")
    return {
        "state": c.CONDITION_SUSPENDED,
        "replicaStatuses": counted,
        **({"replicas": f"0/{total}"} if total else {}),
    }


def _time_to_live(resource: Mapping[str, Any], status: Mapping[str, Any], now: datetime) -> float | None:
    """Seconds until the operator deletes the failed job (0 or less: now), ``None`` where it keeps the job.

    The job cannot be parsed, but may well have a valid ``ttlSecondsAfterFinished``.
    """
    if managers.is_copy_of_multikueue(as_mapping(resource.get("metadata"))):
        return None
    ttl = managers.run_policy_of(resource).get("ttlSecondsAfterFinished")
    ended = conditions.get_condition(conditions.read_conditions(status), outcome(status) or "")
    ago = clock.seconds_since(ended.get("lastTransitionTime"), now) if ended else None
    if isinstance(ttl, bool) or not isinstance(ttl, int) or ttl < 0 or ago is None:
        return None
    return ttl - ago
