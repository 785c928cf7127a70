"""What a reconcile finds of a job that is neither over nor suspended, before it decides anything."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import spec_hash
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.spec_hash import SpecHashes
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.pod_ends import is_done
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.gang_standing import Standing
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.inputs import PlanInputs
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import (
    losses,
    restart_job,
    restart_scope,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.losses import Losses
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.replicas import (
    Progress,
    ReplicaActions,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.restarts_within import Recent
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.stalls import Stalls
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.startup_policy import Wait
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.success import unfinished
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import batch_jobs, conditions
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import completed as completed_
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.retries import retries_of
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import StatusBuilder
from ansible_collections.dljob.operator.plugins.module_utils.shared.gang_scheduler import GangScheduler
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.failure import Failure
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed


@dataclass(frozen=True, slots=True)
class Situation:
    """An active job, its pods, and what its status has recorded of them."""

    job: DLJob
    framework: Framework
    inputs: PlanInputs
    observed: Observed
    """All its objects, with what only the status still has of replicas that batch Jobs run."""
    current: Observed
    """Its pods of this spec and this attempt."""
    going_on: Observed
    """The ``current`` pods of the replicas that have not succeeded."""
    spec_hashes: SpecHashes
    """Of the spec."""
    hashes: SpecHashes
    """Those of the current attempt, which a rule of podFailurePolicy may have begun."""
    is_new_spec: bool
    """Whether the status is of another spec, so that nothing of its progress counts."""
    as_one: bool
    """Whether all replicas restart together (``restartScope: Job``)."""
    attempt: int
    retries: Mapping[str, int]
    """Failures counted so far, by ``<type>-<index>``."""
    ignored: Mapping[str, int]
    """Those that a rule of podFailurePolicy excludes."""
    launched: Mapping[str, Any]
    """What the status has recorded of replicas that batch Jobs run."""
    completed: dict[str, set[int]]
    """Indexes of the replicas that have succeeded, by lower-case type."""
    lost: Losses

    @property
    def now(self) -> datetime:
        """The time of this reconcile."""
        return self.inputs.now

    @property
    def excused(self) -> Observed:
        """The unfinished replicas whose failure is no consequence of the loss of another one."""
        return losses.without(self.going_on, self.lost.uids)

    @property
    def deciding(self) -> Observed:
        """Those of them whose failure decides now."""
        return losses.without(self.excused, self.lost.undecided)

    @property
    def was_running(self) -> bool:
        """Whether the status says that the job runs."""
        return conditions.is_condition_true(conditions.read_conditions(self.job.status), c.CONDITION_RUNNING)

    @property
    def progress(self) -> Progress:
        """What the status records of the job beyond its pods."""
        return Progress(
            self.hashes,
            self.retries,
            self.completed,
            self.attempt,
            self.is_new_spec,
            self.ignored,
            self.lost.uids,
            self.lost.undecided,
        )

    @property
    def undecided(self) -> Observed:
        """All pods, without the ``current`` ones of replicas that have succeeded."""
        if self.going_on is self.current:
            return self.observed
        finished = {pod.uid for pod in self.current.pods}.difference(pod.uid for pod in self.going_on.pods)
        return losses.without(self.observed, finished)


@dataclass(frozen=True, slots=True)
class Decision:
    """What a reconcile decides for the job's replicas."""

    actions: ReplicaActions
    """Without the creations that have to wait."""
    gang: GangScheduler | None
    """The scheduler that starts the pods together, ``None`` where none does."""
    standing: Standing
    waits: tuple[Wait, ...]
    """What replica types wait for."""
    held_up: str
    """Why the gang gets no pods now, as a sentence; "" where it does."""
    time_left: float | None
    """Seconds until the deadline of the job."""
    limited: Mapping[str, int]
    """The retries that the limits are about: before all replicas restart because of them."""
    recent: Recent
    """The recent restarts, with those of this reconcile."""
    escalation: Failure | None
    """Why all replicas restart because of runPolicy.restartsWithin, ``None`` where they do not."""
    stalls: Stalls


def situation(
    job: DLJob, framework: Framework, observed: Observed, report: StatusBuilder, inputs: PlanInputs
) -> Situation:
    """Find the situation of ``job``, and ``report`` whether it begins, or begins anew with another spec."""
    spec_hashes = spec_hash.spec_hashes(job)
    changed = report.forget_progress(spec_hash.fingerprint(job, spec_hashes))
    as_one = restart_scope.applies_to(job)
    attempt = 0 if changed else restart_scope.attempt_of(job.status)
    hashes = spec_hashes
    if not as_one:
        attempt = restart_job.current_attempt(observed, spec_hashes, attempt)
        hashes = spec_hashes.of_attempt(attempt)
    current = _of_this_spec(job, observed, hashes)
    report.taken_up(min((pod.created for pod in current.pods if pod.created), default=""))
    if changed:
        report.respecified(restarts=len(current.pods) < len(observed.pods) or bool(job.status.get("completed")))
    if as_one:
        attempt = restart_scope.current_attempt(current, attempt)
        current = restart_scope.of_this_attempt(current, attempt)
    completed = {} if changed else _completed_of(job)
    for pod in current.pods:
        if is_done(pod):
            completed.setdefault(pod.type, set()).add(pod.index)
        elif pod.ended_early:
            completed.get(pod.type, set()).discard(pod.index)
    going_on = unfinished(current, completed)
    return Situation(
        job,
        framework,
        inputs,
        observed,
        current,
        going_on,
        spec_hashes,
        hashes,
        is_new_spec=changed,
        as_one=as_one,
        attempt=attempt,
        retries={} if changed else batch_jobs.counted(job),
        ignored={} if changed else retries_of(job, "ignoredRetries"),
        launched={} if changed else batch_jobs.read(job.status),
        completed=completed,
        lost=losses.find(job, current, going_on, {} if changed else job.status, inputs.now),
    )


def _completed_of(job: DLJob) -> dict[str, set[int]]:
    """The completed replicas, without those that an elastic job no longer has: they run again when it grows."""
    sizes = {group.type.lower(): group.replicas for group in job.groups}
    stored = completed_.read(job.status.get("completed"))
    return {type_: {i for i in indexes if i < sizes.get(type_, 0)} for type_, indexes in stored.items()}


def _of_this_spec(job: DLJob, observed: Observed, hashes: SpecHashes) -> Observed:
    sizes = {group.type.lower(): group.replicas for group in job.groups}
    pods = tuple(p for p in observed.pods if p.spec_hash == hashes.of(p.type, p.index) and p.index < sizes[p.type])
    return dataclasses.replace(observed, pods=pods)
