"""The model that test_stability.py explores: each part against what Kubernetes does."""

from __future__ import annotations

import pytest
from support.builders import stamp
from support.stability import api_server, state, surroundings
from support.stability.api_server import Answer
from support.stability.explorer import LATE, QUIET, Explorer
from support.stability.scenarios import SCENARIOS, Scenario
from support.stability.state import LONG_AGO, OLDEST, Pod, Spec, State

POD = Pod("w-0", "worker", 0, 0, "hash", "OnFailure")
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


def _running(**changes: object) -> Pod:
    return surroundings.run(POD)._replace(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pod", "stays"),
    [
        (POD, True),
        (POD._replace(blocked=True), False),
        (_running(), True),
        (surroundings.finish(_running(), 0), False),
        (_running(deleting=3), True),
    ],
)
def test_a_deleted_pod_terminates_where_a_node_has_it(pod: Pod, stays: bool) -> None:
    after = api_server.delete(State(pods=(pod,), wake=None), "Pod", pod.name)
    assert [one.deleting is not None for one in after.pods] == [True] * stays
    assert after.wake == 0


@pytest.mark.parametrize(
    ("policy", "code", "phase", "restarts"),
    [
        ("Always", 0, "Running", 1),
        ("OnFailure", 0, "Succeeded", 0),
        ("OnFailure", 1, "Running", 1),
        ("Never", 1, "Failed", 0),
    ],
)
def test_the_kubelet_applies_the_restart_policy(policy: str, code: int, phase: str, restarts: int) -> None:
    ended = surroundings.finish(_running(policy=policy), code)
    assert (ended.phase, ended.restarts, ended.code) == (phase, restarts, code)


def test_a_name_that_terminates_is_not_free() -> None:
    before = State(pods=(_running(deleting=3),))
    after, result = api_server.apply(before, (("pod", POD),))
    assert (after, result.waiting, result.created) == (before, ["Pod/w-0"], [])


def test_only_the_first_pod_is_tried_against_a_quota() -> None:
    other = POD._replace(name="w-1", index=1)
    after, result = api_server.apply(State(), (("pod", POD), ("pod", other)), Answer.DENIED)
    assert (after.pods, len(result.postponed), result.denied) == ((), 1, {"Pod"})


def test_time_makes_everything_older() -> None:
    status = f'{{"startTime": "{stamp(0)}", "reason": "since {stamp(-395)}"}}'
    before = State(status=status, pods=(_running(code=1, ended=-1, created=-399, deleting=5),), wake=30)
    after = state.later(before, 10)
    assert after.status == f'{{"startTime": "{stamp(-10)}", "reason": "since {LONG_AGO}"}}'
    assert after.pods[0][6:] == before.pods[0]._replace(created=OLDEST, ended=-11, deleting=-5)[6:]
    assert (after.wake, state.later(after, 25).wake) == (20, 0)


def test_states_that_differ_only_in_the_times_of_conditions_are_equal() -> None:
    def written(seconds: int, generation: int) -> State:
        condition = {"type": "Created", "lastUpdateTime": stamp(seconds), "lastTransitionTime": stamp(seconds)}
        return state.with_status(State(generation=generation), {"conditions": [condition], "observedGeneration": 2})

    assert written(0, 2) == written(-5, 2)
    assert (written(0, 2).generation, written(0, 1).generation) == (1, 2)


def test_an_edit_is_a_new_generation_only_where_there_is_a_status() -> None:
    assert state.with_spec(State(), Spec(version=1)).generation == 1
    assert state.with_spec(State(status="{}", wake=None), Spec(version=1))[1:2] == (2,)


def test_a_late_reconcile_conflicts_where_the_job_has_changed() -> None:
    explorer = Explorer(BY_NAME["pytorch: on failure"])
    late = explorer.replay(["reconcile", "suspend" + LATE])
    assert (late.wake, late.spec.suspend, late.status) == (0, True, "")
    conflict = explorer.replay(["reconcile", "reconcile" + LATE])
    assert conflict.wake == 1, "the other reconcile has written the status"


def test_a_crash_loses_the_status_and_later_writes() -> None:
    after = Explorer(BY_NAME["pytorch: on failure"]).replay(["crash after write 3"])
    assert (len(after.objects), len(after.pods), after.status, after.wake) == (2, 1, "", 0)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_an_undisturbed_job_succeeds(scenario: Scenario) -> None:
    explorer = Explorer(scenario)
    path: list[str] = []
    found = explorer.replay(path)
    for _ in range(40):
        if state.outcome(found) is not None:
            break
        path.append(QUIET)
        found = explorer.replay(path)
    assert state.outcome(found) == "Succeeded"
