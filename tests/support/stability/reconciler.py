"""The operator of the model: reconciles as ``api/reconcile.py`` does, with the product's own plan and conclusion."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import Owner
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.observed_state import build_observed_state
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.conclude import conclude, defer
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.plan import plan
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import initial_status, restart_scope
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.apply_result import Resolution
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, OwnedObject, PodState
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Plan

from support.builders import NOW, Resource
from support.stability import api_server, invariants, policies
from support.stability.api_server import Answer, Write
from support.stability.scenarios import Scenario
from support.stability.state import Pod, Spec, State, Step, read_status, stamp_of, with_status

CONFLICT_REQUEUE = 1
"""Seconds, in whole ones: the model has no shorter time."""
REMEMBERED = 30_000
"""Plans, which are most of the time of an exploration."""


@dataclass(frozen=True)
class Planned:
    """What a reconcile decides."""

    job: DLJob
    observed: Observed
    plan: Plan
    """Without its manifests, which are in ``writes``."""
    writes: tuple[Write, ...]

    @property
    def is_quiet(self) -> bool:
        """Whether it writes nothing."""
        return not self.writes and self.plan.status is None and not self.plan.delete_job

    @functools.cached_property
    def current(self) -> list[PodState]:
        """The observed pods of the present spec; where a rule restarts the job, of the present attempt."""
        recorded = 0 if restart_scope.applies_to(self.job) else self._recorded_attempt
        annotations = policies.attempts(self.job, self.observed.pods, recorded)
        return [pod for pod in self.observed.pods if pod.spec_hash == annotations.get((pod.type, pod.index))]

    @functools.cached_property
    def of_attempt(self) -> list[PodState]:
        """:attr:`current`, of the present attempt under ``restartScope: Job`` too."""
        if not restart_scope.applies_to(self.job):
            return self.current
        newest = max([self._recorded_attempt, *(pod.attempt for pod in self.current if not pod.deleting)])
        return [pod for pod in self.current if pod.attempt == newest]

    @property
    def _recorded_attempt(self) -> int:
        """That of the status, 0 where the spec has changed since."""
        old, new = self.job.status, self.plan.status or self.job.status
        return int(old.get("attempt", 0)) if old.get("specHash") in (None, new.get("specHash")) else 0


class Reconciler:
    """The operator of one scenario's job."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._jobs: dict[tuple[Spec, int], DLJob] = {}
        self._pods: dict[Pod, PodState] = {}
        self._plans: dict[State, Planned] = {}

    def job(self, state: State) -> DLJob:
        known = self._jobs.get((state.spec, state.generation))
        if known is None:
            resource = self._scenario.manifest(state.spec)
            resource["metadata"]["generation"] = state.generation
            known = self._jobs[state.spec, state.generation] = parse_job(resource, self._scenario.framework)
        return dataclasses.replace(known, status=read_status(state.status))

    def planned(self, state: State) -> Planned:
        """The plan from the present observation of ``state``."""
        seen = state._replace(wake=None)
        known = self._plans.get(seen)
        if known is None:
            if len(self._plans) > REMEMBERED:
                self._plans.clear()
            known = self._plans[seen] = self._plan(state)
        return known

    def _plan(self, state: State) -> Planned:
        job = self.job(state)
        observed = self.observed(state)
        made = plan(job, self._scenario.framework, observed, NOW)
        writes = api_server.writes_of(made)
        kept = dataclasses.replace(
            made, auxiliary_objects=(), services=(), pods=(), ensured_objects=(), routes=(), events=()
        )
        return Planned(job, observed, kept, writes)

    def observed(self, state: State) -> Observed:
        return Observed(
            pods=tuple(self._pod_state(pod) for pod in state.pods),
            services={one.name: one.name for one in state.objects if one.kind == "Service"},
            owned_objects={
                (one.kind, one.name): OwnedObject(one.name, one.hash, one.lifetime) for one in state.objects
            },
        )

    def _pod_state(self, pod: Pod) -> PodState:
        known = self._pods.get(pod)
        if known is None:
            owner = self._scenario.resource["metadata"]["uid"]
            container = self._scenario.framework.container
            (known,) = build_observed_state(
                Owner("default", owner), container, [_manifest(pod, owner, container)], []
            ).pods
            self._pods[pod] = known
        return known

    # --- transitions

    def reconcile(self, state: State) -> State:
        """A complete reconcile with the present observation."""
        return self._carry_out(self.planned(state), state, state, Answer.CREATED)

    def steps(self, state: State) -> Iterator[tuple[str, Step]]:
        """The complete reconcile, and those that are interrupted or whose pods the API server rejects."""
        planned = self.planned(state)
        yield "reconcile", partial(self.reconcile, state)
        # the last write is followed by the status, if any
        for number in range(1, len(planned.writes) + (planned.plan.status is not None)):
            yield f"crash after write {number}", partial(self._crash, planned, state, number)
        if any(what == "pod" for what, _ in planned.writes):
            yield "reconcile, pods denied", partial(self._carry_out, planned, state, state, Answer.DENIED)
            yield "reconcile, pods refused", partial(self._carry_out, planned, state, state, Answer.REFUSED)

    def late(self, seen: State, state: State) -> State:
        """A reconcile at ``state`` that has read its objects at ``seen``."""
        return state if state.gone else self._carry_out(self.planned(seen), seen, state, Answer.CREATED)

    def _crash(self, planned: Planned, state: State, number: int) -> State:
        """The operator restarts after its first writes, and reconciles every job."""
        writes = planned.writes[:number]
        invariants.check_created(planned, self._scenario.framework, state, writes)
        return api_server.apply(state, writes)[0]._replace(wake=0)

    def _carry_out(self, planned: Planned, seen: State, state: State, answer: Answer) -> State:
        if seen is state:
            invariants.check_created(planned, self._scenario.framework, state, planned.writes)
            invariants.check_deleted(planned, state)
        after, result = api_server.apply(state, planned.writes, answer)
        if planned.plan.delete_job:
            return State(gone=True, wake=None)
        concluded = conclude(planned.job, Resolution(planned.plan), result, NOW)
        created = any(name.startswith("Pod/") for name in result.created)
        if (
            created
            and not result.incomplete
            and initial_status.can_defer(planned.job, planned.observed, concluded.status)
        ):
            concluded = defer(concluded)
        wake = None if concluded.requeue_after is None else math.ceil(concluded.requeue_after)
        if concluded.status is not None:
            if seen.job_version != state.job_version:
                wake = CONFLICT_REQUEUE
            else:
                after = with_status(after, concluded.status)
                invariants.check_status(planned, state, after)
        if seen is not state and state.wake is not None:  # what it has not seen triggers another one
            wake = state.wake if wake is None else min(wake, state.wake)
        return after._replace(wake=wake)


def _manifest(pod: Pod, owner: str, container: str) -> Resource:
    """The pod as the API server returns it."""
    metadata = {
        "name": pod.name,
        "namespace": "default",
        "uid": pod.name,
        "creationTimestamp": stamp_of(pod.created),
        "labels": {
            c.LABEL_REPLICA_TYPE: pod.type,
            c.LABEL_REPLICA_INDEX: str(pod.index),
            c.LABEL_ATTEMPT: str(pod.attempt),
        },
        "annotations": {c.ANNOTATION_SPEC_HASH: pod.hash},
        "ownerReferences": [{"uid": owner, "controller": True}],
    }
    if pod.deleting is not None:
        metadata["deletionTimestamp"] = stamp_of(pod.deleting)
        metadata["deletionGracePeriodSeconds"] = api_server.GRACE_PERIOD
    status: Resource = {"phase": pod.phase, "conditions": []}
    if pod.blocked:
        status["conditions"].append({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"})
    if pod.disrupted:
        status["conditions"].append({"type": "DisruptionTarget", "status": "True"})
    if pod.runs:
        status["conditions"].append({"type": "Ready", "status": "True"})
    if pod.code is None and pod.reason:
        status["reason"] = pod.reason  # it failed before its container ran
    elif pod.phase != "Pending":
        status["containerStatuses"] = [_container_status(pod, container)]
    return {"metadata": metadata, "spec": {"restartPolicy": pod.policy}, "status": status}


def _container_status(pod: Pod, container: str) -> Resource:
    ended = {"terminated": {"exitCode": pod.code, "reason": pod.reason, "finishedAt": stamp_of(pod.ended)}}
    state = ended if pod.terminated else {"running": {}}
    last = {"lastState": ended} if pod.code is not None and not pod.terminated else {}
    return {"name": container, "restartCount": pod.restarts, "state": state, **last}
