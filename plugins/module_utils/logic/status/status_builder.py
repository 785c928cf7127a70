"""Builds a job's new status from the old one and the transitions of this reconcile, with the Events that report them.

Every transition is a method. At the end, a comparison with the old status shows whether there is anything to write.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.log_tail import IN_STATUS, log_tail
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import (
    batch_jobs,
    conditions,
    replica_statuses,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import completed as completed_
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.conditions import NewCondition
from ansible_collections.dljob.operator.plugins.module_utils.shared.event import EventNote
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.failure import Failure
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import STATUS_V1
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, JobRecord
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import PodState

PROGRESS = (
    "completed", "retries", "ignoredRetries", "lastLoss", "consequentRestarts", "recentRestarts", "batchJobs",
    "specHash", "allRunning",
)  # fmt: skip
"""The fields of the status that a suspended job loses."""

FINAL_STATES = (c.STATE_SUCCEEDED, c.STATE_FAILED)
_RETRY_AFTER_EDIT = (c.REASON_INVALID, c.REASON_REFUSED)
"""Reasons of failures that an edit of the spec may fix. A job that failed by one of them starts again after an edit."""

MESSAGE_LIMIT = 1024
"""Characters of a message, an Event's own limit."""


def outcome(status: Mapping[str, Any]) -> str | None:
    """Succeeded or Failed, ``None`` for a job that is not finished.

    training-operator wrote a status without a state, so its conditions are used: a job that finished under
    training-operator must not run again under this operator.
    """
    if "state" in status:
        return status["state"] if status["state"] in FINAL_STATES else None
    return next(
        (type_ for type_ in FINAL_STATES if conditions.is_condition_true(conditions.read_conditions(status), type_)),
        None,
    )


def is_finished(status: Mapping[str, Any], generation: int, *, is_queued: bool) -> bool:
    """Whether the job with that status has finished and cannot start again.

    One that ``is_queued`` never can: Kueue has given its quota back and admits it no more.
    """
    if outcome(status) is None:
        return False
    return is_queued or status.get("observedGeneration") == generation or not starts_after_edit(status)


def has_finished(job: JobRecord) -> bool:
    """:func:`is_finished` of a job."""
    return is_finished(job.status, job.generation, is_queued=job.is_queued)


def starts_after_edit(status: Mapping[str, Any]) -> bool:
    """Whether a job that has finished with that status starts again once its spec is changed."""
    return as_mapping(status.get("failure")).get("reason") in _RETRY_AFTER_EDIT


class StatusChanges:
    """The changes and Events that valid and invalid jobs have in common."""

    def __init__(self, job: JobRecord, now: datetime, old: Mapping[str, Any]) -> None:
        self._job = job
        self._now = clock.stamp(now)
        self._fields: dict[str, Any] = dict(old)
        self._events: list[EventNote] = []
        self._fields["runtimeId"] = job.runtime_id
        self._fields["observedGeneration"] = job.generation
        self._conditions = conditions.read_conditions(old)

    # --- current values

    @property
    def started(self) -> str | None:
        return self._fields.get("startTime")

    @property
    def state(self) -> str | None:
        """The outcome of a finished job."""
        return outcome(self._fields)

    @property
    def ended_at(self) -> str | None:
        """When a finished job got the condition of its outcome."""
        ended = conditions.get_condition(self._conditions, self.state or "")
        return ended.get("lastTransitionTime") if ended else None

    @property
    def reason(self) -> str:
        return str(self._fields.get("reason") or "")

    @property
    def conditions(self) -> Sequence[Mapping[str, Any]]:
        return list(self._conditions)

    @property
    def events(self) -> tuple[EventNote, ...]:
        return tuple(self._events)

    def status(self) -> Mapping[str, Any] | None:
        """The status to write, ``None`` where it equals the job's current status."""
        return None if self._fields == self._job.status else self._fields

    # --- transitions

    def suspended(self) -> None:
        """Suspend the job. All its replicas restart when it is resumed, so their progress is forgotten.

        So is the template: Kueue admits the job again to other nodes, which is no edit that a user has to know of. The
        attempt stays, because pods of the last one may still terminate.
        """
        for name in PROGRESS:
            self._fields.pop(name, None)
        self._condition(c.CONDITION_SUSPENDED, f"{self._job.kind} {self._job.name} is suspended.")
        self._fields["reason"] = ""

    def _resumed(self, event: str) -> None:
        message = f"{self._job.kind} {self._job.name} is resumed."
        self._set(NewCondition(c.CONDITION_SUSPENDED, f"{self._job.kind}Resumed", message, "False"), event)

    def _failed(self, failure: Failure, reason: str, event: str) -> None:
        """``reason`` is that of the condition."""
        message = clip(failure.message)
        self._set(NewCondition(c.CONDITION_FAILED, reason, message), event)
        self._fields["state"] = c.STATE_FAILED
        self._fields["reason"] = clip(f"{failure.reason}: {failure.message}")
        self._fields["failure"] = {
            name: value
            for name, value in (
                ("pod", failure.pod),
                ("container", failure.container),
                ("exitCode", failure.exit_code),
                ("reason", failure.reason),
                ("message", log_tail(failure.log, IN_STATUS) or message),
            )
            if value not in (None, "")
        }

    def event(self, kind: str, reason: str, message: str) -> None:
        self._events.append(EventNote(kind, reason, clip(message)))

    def _condition(self, type_: str, message: str, event: str = "Normal") -> None:
        """Set the condition to True, and write an Event of the type ``event`` if it is new; none for ""."""
        self._set(NewCondition(type_, f"{self._job.kind}{type_}", message), event)

    def _set(self, new: NewCondition, event: str) -> None:
        before = self._conditions
        clipped = dataclasses.replace(new, message=clip(new.message))
        self._conditions = conditions.set_condition(before, clipped, self._now)
        self._fields["conditions"] = self._conditions
        if event and self._conditions != before:
            self.event(event, new.reason, new.message)

    # --- plain fields

    def phase(self, phase: str) -> None:
        self._fields["phase"] = phase

    def waiting(self, reason: str) -> None:
        self._fields["reason"] = clip(reason)


class InvalidStatusBuilder(StatusChanges):
    """Collects the status changes and Events of one reconcile of an invalid job. What nothing changes stays."""

    def __init__(self, job: JobRecord, now: datetime) -> None:
        super().__init__(job, now, job.status)

    def begun(self, first_pod_created: str, was_suspended: bool) -> None:
        """Record that the job runs since ``first_pod_created`` (RFC 3339)."""
        self._fields |= {"phase": c.PHASE_CREATING, "startTime": first_pod_created}
        if was_suspended:
            self._fields["state"] = c.STATE_RUNNING
            self._resumed(event="")

    def errors(self, message: str) -> None:
        """Report the errors in an Event."""
        self.event("Warning", f"{self._job.kind}{c.REASON_INVALID}", message)

    def failed(self, message: str) -> None:
        """Fail the job with its errors; those of an earlier edit are gone."""
        self._conditions = [
            x for x in self._conditions if x.get("message") == message or x.get("type") != c.CONDITION_FAILED
        ]
        self._failed(Failure(c.REASON_INVALID, message), f"{self._job.kind}{c.REASON_INVALID}", event="")
        self.phase(c.PHASE_FAILED)
        self.errors(message)

    def no_replicas(self) -> None:
        """Report that the job has no active replica."""
        self._fields |= replica_statuses.without_pods(self._job.status)


class StatusBuilder(StatusChanges):
    """Collects the status changes and Events of one reconcile, all with the time ``now``."""

    _job: DLJob

    def __init__(self, job: DLJob, now: datetime) -> None:
        finished = has_finished(job)
        starts_again = outcome(job.status) is not None and not finished
        left = {"attempt": job.status["attempt"]} if "attempt" in job.status else {}
        super().__init__(job, now, left if starts_again else job.status)
        if job.flavor.version:
            self._fields[c.STATUS_API_VERSION] = job.api_version
        self._fields["conditions"] = self._conditions
        if finished:
            self._fields["state"] = outcome(job.status)

    @property
    def completed_at(self) -> str | None:
        """The end of a finished job. One that was invalid, and could not be parsed, has it in its condition only."""
        return self._fields.get("completionTime") or self.ended_at

    def forget_progress(self, spec_hash: str) -> bool:
        """Drop the progress of the replicas of another spec; returns whether the spec has changed."""
        known = self._job.status.get("specHash")  # a job that starts again has it in its old status only
        has_changed = known not in (None, spec_hash)
        if has_changed:
            for name in (*PROGRESS, "attempt", c.STATUS_IGNORED):
                self._fields.pop(name, None)
        self._fields["specHash"] = spec_hash
        return has_changed

    # --- transitions

    def created(self) -> None:
        if not conditions.is_condition_true(self.conditions, c.CONDITION_CREATED):
            self._condition(c.CONDITION_CREATED, f"{self._job.kind} {self._job.name} is created.", event="")

    def taken_up(self, first_pod_created: str = "") -> None:
        """``first_pod_created`` is the creation time (RFC 3339) of the first pod of a job without a status."""
        self.created()
        if self.started is None:
            self._fields["startTime"] = first_pod_created or self._now
        if conditions.is_condition_true(self.conditions, c.CONDITION_SUSPENDED):
            self._resumed("Normal")
            self._fields["startTime"] = self._now

    def running(self) -> None:
        self._condition(c.CONDITION_RUNNING, f"{self._job.kind} {self._job.name} is running.")

    def restarting(self, pods: Sequence[PodState], failures: Sequence[Failure]) -> None:
        names = ", ".join(p.name for p in pods[:3]) + (" ..." if len(pods) > 3 else "")
        text = f"{self._job.kind} {self._job.name} restarts {len(pods)} failed replicas: {names}"
        message = f"{text}; {failures[0].message}" if failures else text
        self._condition(c.CONDITION_RESTARTING, message, event="")
        self.event("Warning", f"{self._job.kind}Restarting", message)

    def restarting_all(self, failures: Sequence[Failure]) -> None:
        cause = failures[0].message if failures else "one of its pods was deleted"
        message = f"{self._job.kind} {self._job.name} restarts all its replicas: {cause}"
        self._condition(c.CONDITION_RESTARTING, message, event="")
        self.event("Warning", f"{self._job.kind}Restarting", message)

    def restarted_by_batch_job(self, failure: Failure) -> None:
        """Report a restart that a batch Job makes, without a condition: its replica counts as running, as in Kubernetes
        and for mpi-operator."""
        text = f"{self._job.kind} {self._job.name}: its batch Job has started a replica again: {failure.message}"
        self.event("Warning", f"{self._job.kind}Restarting", text)

    def respecified(self, restarts: bool = True) -> None:
        """The spec of replicas was changed. ``restarts``, whether some of them have begun by the one before."""
        text = f"The spec of {self._job.kind} {self._job.name} was changed"
        message = f"{text}: its replicas restart." if restarts else f"{text}."
        if restarts:
            self._condition(c.CONDITION_RESTARTING, message, event="")
        self.event("Normal", f"{self._job.kind}Changed", message)

    def suspended(self) -> None:
        self.created()
        self.stalled("")
        super().suspended()

    def stalled(self, message: str) -> None:
        """Report that the job stalls, "" that it does not."""
        if message:
            self._condition(c.CONDITION_STALLED, message, "Warning")
        elif conditions.is_condition_true(self.conditions, c.CONDITION_STALLED):
            text = f"{self._job.kind} {self._job.name} does not stall any more."
            self._set(NewCondition(c.CONDITION_STALLED, f"{self._job.kind}NotStalled", text, "False"), "Normal")

    def succeeded(self) -> None:
        self.stalled("")
        self._condition(c.CONDITION_SUCCEEDED, f"{self._job.kind} {self._job.name} is successfully completed.")
        self._fields |= {"completionTime": self._now, "state": c.STATE_SUCCEEDED, "reason": ""}
        self._fields.pop("failure", None)

    def failed(self, failure: Failure) -> None:
        self._failed(failure, f"{self._job.kind}{c.CONDITION_FAILED}", event="Warning")
        self._fields["completionTime"] = self._now

    # --- plain fields

    def replicas(self, counts: dict[str, Counter[str]]) -> None:
        self._fields["replicaStatuses"] = replica_statuses.render(self._job, counts)
        self._fields["replicas"] = replica_statuses.summary(self._job, counts)

    def ignored_settings(self, by_type: Mapping[str, str], message: str) -> None:
        """Store what the operator ignores of the templates; with an Event of that ``message`` where it is new."""
        if by_type == self._fields.get(c.STATUS_IGNORED, {}):
            return
        self._fields.pop(c.STATUS_IGNORED, None)
        if by_type:
            self._fields[c.STATUS_IGNORED] = dict(by_type)
            self.event("Warning", c.EVENT_IGNORED, message)

    def progress(
        self,
        counted: tuple[Mapping[str, int], Mapping[str, int]],
        completed: completed_.Completed,
        attempt: int,
        launched: Mapping[str, Any],
    ) -> None:
        """Store what must outlive the pods. ``counted`` are the retries and the ignored ones, ``attempt`` is that of
        the whole job, ``launched`` are the :mod:`.batch_jobs`, whose restarts ``counted`` does not have."""
        retries, ignored = counted
        progress = (
            ("retries", batch_jobs.with_restarts(retries, launched)),
            ("ignoredRetries", dict(ignored)),
            (batch_jobs.FIELD, dict(launched)),
            ("completed", completed_.write(completed)),
            ("attempt", attempt),
        )
        self._store(progress)

    def losses(self, last: Mapping[str, Any], consequences: Mapping[str, int]) -> None:
        """Store the last loss of a replica and the restarts that were consequences (:mod:`..plan.policies.losses`)."""
        self._store((("lastLoss", dict(last)), ("consequentRestarts", dict(consequences))))

    def recent_restarts(self, recent: Mapping[str, Any]) -> None:
        """Store the restarts that ``runPolicy.restartsWithin`` is about (:mod:`..plan.policies.restarts_within`)."""
        self._store((("recentRestarts", dict(recent)),))

    def all_running(self, running: Mapping[str, Any]) -> None:
        """Store since when all replicas run (:mod:`..plan.policies.stalls`)."""
        self._store((("allRunning", dict(running)),))

    def _store(self, fields: Iterable[tuple[str, Any]]) -> None:
        """Set the fields that have a value, and drop the others."""
        for name, value in fields:
            if value:
                self._fields[name] = value
            else:
                self._fields.pop(name, None)

    # --- the outcome

    def status(self) -> Mapping[str, Any] | None:
        fields = dict(self._fields)
        if fields.get("state") not in FINAL_STATES:
            fields["state"] = self._state()
        for name in ("phase", "reason"):
            fields.setdefault(name, "")
        return None if fields == self._job.status else fields

    def _state(self) -> str:
        if self._job.flavor.status != STATUS_V1:
            return c.STATE_RUNNING
        current = [x["type"] for x in self._fields["conditions"] if x.get("status") == "True"]
        return current[-1] if current else c.CONDITION_CREATED


def clip(text: str) -> str:
    """``text``, truncated to the limit of an Event's message."""
    return text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 3] + "..."
