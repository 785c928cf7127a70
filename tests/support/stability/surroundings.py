"""Kubelet, scheduler, tenants and time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from support.stability import api_server
from support.stability.scenarios import Scenario
from support.stability.state import Pod, State, Step, later, with_pod, with_spec


def steps(scenario: Scenario, state: State) -> Iterator[tuple[str, Step]]:
    """Every transition that is not the operator's."""
    for pod in state.pods:
        for what, after in _pod_steps(pod):
            yield f"{what} {pod.type}-{pod.index}", partial(with_pod, state, pod, after)
    yield from _tenants(scenario, state)
    if state.wake:
        yield "advance to the requeue", partial(later, state, state.wake)


def _pod_steps(pod: Pod) -> Iterator[tuple[str, Pod | None]]:
    if pod.deleting is not None:
        yield "terminate", None
        if pod.phase == "Running" and not pod.terminated:
            yield "exit 0 while terminating", _ended(pod, 0)
            yield "exit 143 while terminating", _ended(pod, 143)
        return
    if pod.phase == "Pending":
        yield "run", run(pod)
        if not pod.blocked:
            yield "block", pod._replace(blocked=True)
            yield "reject", pod._replace(phase="Failed", reason="OutOfcpu")
    elif pod.runs:
        for code in (0, 1, 137):
            yield f"exit {code}", finish(pod, code)
        yield "run out of memory", finish(pod, 137, "OOMKilled")
        evicted = _ended(pod, 137)
        yield "evict", evicted._replace(disrupted=True)


def run(pod: Pod) -> Pod:
    return pod._replace(phase="Running", blocked=False)


def finish(pod: Pod, code: int, reason: str = "") -> Pod:
    """The container exits, and the kubelet applies the pod's restart policy."""
    if pod.policy == "Always" or (pod.policy == "OnFailure" and code):
        return pod._replace(code=code, reason=reason or _reason(code), ended=0, restarts=pod.restarts + 1)
    return _ended(pod, code, reason)


def _ended(pod: Pod, code: int, reason: str = "") -> Pod:
    return pod._replace(
        phase="Failed" if code else "Succeeded", code=code, reason=reason or _reason(code), ended=0, terminated=True
    )


def _reason(code: int) -> str:
    return "Error" if code else "Completed"


def _tenants(scenario: Scenario, state: State) -> Iterator[tuple[str, Step]]:
    spec = state.spec
    yield "edit the template", partial(with_spec, state, spec._replace(version=1 - spec.version))
    yield "scale", partial(with_spec, state, spec._replace(size=1 - spec.size))
    if scenario.can_suspend:
        what = "resume" if spec.suspend else "suspend"
        yield what, partial(with_spec, state, spec._replace(suspend=not spec.suspend))
    for one in state.objects:
        yield f"delete {one.kind} {one.name}", partial(api_server.delete, state, one.kind, one.name)
    if scenario.edited_run_policy:
        yield "edit the run policy", partial(with_spec, state, spec._replace(policy=1 - spec.policy))
    for pod in state.pods:
        if pod.deleting is None:
            yield f"delete {pod.type}-{pod.index}", partial(api_server.delete, state, "Pod", pod.name)
            yield f"drain {pod.type}-{pod.index}", partial(_drain, state, pod)


def _drain(state: State, pod: Pod) -> State:
    """A deletion by the eviction API, the scheduler or the taint manager: first the condition, then the deletion."""
    return api_server.delete(with_pod(state, pod, pod._replace(disrupted=True)), "Pod", pod.name)


def quiet_step(state: State) -> State | None:
    """What the kubelet does where nothing fails: pending pods run, terminating ones are gone. ``None``: nothing."""
    pods = tuple(run(pod) if pod.phase == "Pending" else pod for pod in state.pods if pod.deleting is None)
    return None if pods == state.pods else state._replace(pods=pods, wake=0)


def end(scenario: Scenario, state: State) -> State:
    """The end of the scenario: every process that does not run for ever exits with 0."""
    pods = tuple(finish(pod, 0) if pod.runs and not scenario.is_long_running(pod.type) else pod for pod in state.pods)
    return state if pods == state.pods else state._replace(pods=pods, wake=0)
