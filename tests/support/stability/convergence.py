"""The quiet closure: the only path of a state where nothing fails and nothing is edited, and whether it ends as desired.

The operator reconciles when a watch event or its own requeue triggers it, and at no other time: a plan that relies on a
trigger that never comes is found here.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.services import build_all
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.failure import lost_pods
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import completed as completed_
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import conditions

from support.stability import policies, surroundings
from support.stability.invariants import require
from support.stability.reconciler import Planned, Reconciler
from support.stability.scenarios import Scenario
from support.stability.state import State, Violation, later, outcome, read_status

BOUND = 120
"""Transitions of a quiet closure."""


@dataclass(frozen=True, slots=True)
class Move:
    """One transition of a quiet closure; ``after`` is ``None`` at its end."""

    after: State | None
    is_reconcile: bool = False


class Convergence:
    """Checks that states of one scenario converge, each once."""

    def __init__(self, scenario: Scenario, reconciler: Reconciler) -> None:
        self._scenario = scenario
        self._reconciler = reconciler
        self._distance: dict[State, int] = {}
        """Reconciles from a state to the end of its quiet closure."""

    @property
    def longest(self) -> int:
        """Reconciles of the longest quiet closure."""
        return max(self._distance.values(), default=0)

    def check(self, state: State) -> None:
        """Raises :class:`Violation` unless the quiet closure of ``state`` ends as desired."""
        path: list[tuple[State, bool]] = []
        on_path: set[State] = set()
        current = state
        while current not in self._distance:
            require(current not in on_path, f"the job does not settle: {_texts(path)}")
            require(len(path) < BOUND, f"the job does not settle within {BOUND} transitions")
            move = self._move(current)
            path.append((current, move.is_reconcile))
            on_path.add(current)
            if move.after is None:
                break
            current = move.after
        distance = self._distance.get(current, 0)
        for visited, is_reconcile in reversed(path):
            distance += is_reconcile
            self._distance[visited] = distance

    def next(self, state: State) -> State | None:
        """The state after the first transition of the quiet closure, ``None`` at its end."""
        return self._move(state).after

    def _move(self, state: State) -> Move:
        if state.gone:
            return Move(None)
        if state.wake == 0:
            return Move(self._reconciler.reconcile(state), is_reconcile=True)
        quiet = surroundings.quiet_step(state)
        if quiet is not None:
            return Move(quiet)
        planned = self._reconciler.planned(state)
        problem = undesired(self._scenario, planned, state) if planned.is_quiet else "a write is due"
        if problem and state.wake is None:
            raise Violation(f"the job stays undesired, and nothing triggers a reconcile: {problem}")
        if problem:
            return Move(later(state, state.wake or 0))
        if outcome(state) is not None:
            return Move(later(state, state.wake) if state.wake else None)  # its time to live
        if state.spec.suspend and self._scenario.can_suspend:
            return Move(None)
        ended = surroundings.end(self._scenario, state)
        require(ended is not state, "the job has no process that runs, and no outcome")
        return Move(ended)


def _texts(path: list[tuple[State, bool]]) -> str:
    return "; ".join(read_status(state.status).get("phase", "no status") for state, _ in path[-5:])


def undesired(scenario: Scenario, planned: Planned, state: State) -> str:
    """What the quiet ``state`` lacks of the desired one, "" where it lacks nothing."""
    if outcome(state) is not None:
        return _unfinished(planned, state)
    if planned.job.run_policy.suspend:
        return _unsuspended(state)
    return _unready(scenario, planned, state)


def _unfinished(planned: Planned, state: State) -> str:
    status = read_status(state.status)
    phase = {"Succeeded": "Done", "Failed": "Failed"}[status["state"]]
    policy = planned.job.run_policy.clean_pod_policy
    kept = [
        pod.name
        for pod in state.pods
        if policy == "All" or (policy == "Running" and pod.phase != "Succeeded" and pod.phase != "Failed")
    ]
    if policy != "None" and any(one.kind == "Service" and not one.lifetime for one in state.objects):
        return "its Services are still there"
    if _active_objects(state):
        return f"it has ended and has {_active_objects(state)}"
    if kept:
        return f"cleanPodPolicy {policy} left {kept}"
    if planned.job.run_policy.ttl_seconds_after_finished is not None and not state.wake:
        return "nothing ends its time to live"
    return "" if status["phase"] == phase else f"its phase is {status['phase']}"


def _unsuspended(state: State) -> str:
    if state.pods:
        return f"a suspended job has the pods {[pod.name for pod in state.pods]}"
    if _active_objects(state):
        return f"a suspended job has {_active_objects(state)}"
    return "" if _is_true(state, "Suspended") else "its status does not say Suspended"


def _active_objects(state: State) -> list[str]:
    """The objects that exist only while the job is neither suspended nor finished."""
    return [f"{one.kind} {one.name}" for one in state.objects if one.lifetime == "active"]


def _unready(scenario: Scenario, planned: Planned, state: State) -> str:
    status = read_status(state.status)
    done = completed_.read(status.get("completed"))
    lost = {pod.name for pod in lost_pods(planned.job, planned.observed) if not policies.is_consequence(status, pod)}
    held = policies.held_back(planned.job, scenario.framework, planned.observed.pods, done)
    for group, index in planned.job.tasks():
        rank = group.type.lower(), index
        pods = [pod for pod in state.pods if pod.rank == rank]
        if len(pods) > 1:
            return f"{rank} has {len(pods)} pods"
        if index in done.get(rank[0], ()):
            continue
        if not pods and group.type in held:
            continue
        if not pods:
            return f"{rank} has no pod"
        if not pods[0].runs and pods[0].name not in lost:
            return f"{rank} does not run: {pods[0]}"
    owned = {one.name for one in state.objects}
    if any(service["metadata"]["name"] not in owned for service in build_all(planned.job, scenario.framework)):
        return "it lacks a Service"
    if scenario.has_autoscaler and not _active_objects(state):
        return "it lacks its HorizontalPodAutoscaler"
    if len(state.pods) > planned.job.total:
        return "it has pods of no replica"
    reason = str(status.get("reason") or "")
    if held and len(state.pods) < planned.job.total:
        return (
            "" if "starts once all replicas of" in reason or lost else f"its reason is {reason!r}, and it waits: {held}"
        )
    if status.get("phase") != "Running" or not _is_true(state, "Running"):
        return f"its phase is {status.get('phase')}"
    if _is_true(state, "Suspended"):
        return "its status still says Suspended"
    if reason and not lost:
        return f"its reason is still {reason}"
    return ""


def _is_true(state: State, condition: str) -> bool:
    return conditions.is_condition_true(conditions.read_conditions(read_status(state.status)), condition)
