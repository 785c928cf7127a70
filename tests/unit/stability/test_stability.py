"""From every reachable state the job reaches its desired state once its surroundings are quiet, and stays there.

The default visits 300 states of each scenario. DLJOB_STABILITY_STATES sets the number for all scenarios together.
`make test-full` also visits 125,000 states with each of four other seeds.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import owned_objects
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe import pod_ends
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan import at_rest, plan, situation
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import (
    clean_pod_policy,
    max_restarts_per_replica,
    replicas,
    restart_job,
    startup_policy,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import retries
from support.stability import reconciler
from support.stability.__main__ import main
from support.stability.campaign import explore
from support.stability.explorer import LATE, QUIET, Explorer
from support.stability.scenarios import SCENARIOS, Scenario
from support.stability.state import Violation

STATES = int(os.environ.get("DLJOB_STABILITY_STATES") or 300 * len(SCENARIOS))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_every_state_becomes_stable(scenario: Scenario) -> None:
    figures = Explorer(scenario).explore(STATES // len(SCENARIOS))
    assert figures.is_complete or figures.states >= STATES // len(SCENARIOS)


@pytest.mark.full
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_an_exploration_with_another_seed_finds_nothing(seed: int) -> None:
    figures = [one for family in explore(125_000, seed).values() for one in family]
    assert sum(one.states for one in figures) >= 100_000


FOUND = {
    # nothing triggered the deletion of the autoscaler, because nothing else was to be cleaned up
    "autoscaler of a finished job": (
        "pytorch elastic: metrics",
        [QUIET, "run worker-0", "exit 0 worker-0", QUIET],
    ),
    # a type that had its pod was reported as waiting
    "start order of a job that runs": (
        "startup policy, pytorch: master after the workers have completed",
        ["edit the run policy", "edit the run policy" + LATE],
    ),
    # the completed replicas of a spec counted for the next one, because a job that starts again forgot its spec hash
    "progress of a refused job": (
        "pytorch: exit code, ttl",
        [
            *[QUIET, "run worker-0", "exit 0 worker-0", QUIET, "scale"],
            *["reconcile, pods refused", "edit the template", "reconcile"],
        ],
    ),
    # a deleted pod's exit was reported as the last one of the errors over backoffLimit
    "failure of a deleted pod": (
        "tensorflow list: on failure, backoff 0, all",
        [
            *[QUIET, "run master-0", "reject ps-0", "delete master-0"],
            *["exit 143 while terminating master-0", "reconcile"],
        ],
    ),
    # the pod of a completed replica that ran again was kept as one whose end the cache did not have yet
    "another pod of a completed replica": (
        "tensorflow list: parameter server",
        [
            *["suspend" + LATE, "delete Service tfjob-76no" + LATE, "terminate ps-0", "resume", QUIET, QUIET, QUIET],
            *["reject master-0", QUIET, QUIET, "exit 0 ps-0", "delete ps-0" + LATE],
            *["edit the template" + LATE, "edit the template" + LATE],
        ],
    ),
    # Running was reported one reconcile after the edit, and nothing triggered that one
    "an edited job that runs already": (
        "tensorflow map: whole job, backoff 1",
        [
            *["scale", QUIET, QUIET, "exit 1 worker-0", "drain worker-1", "delete worker-0"],
            *[QUIET, "terminate worker-1", "scale", "crash after write 1", "run worker-0"],
        ],
    ),
    # the end of the job triggered no other reconcile unless there was something to delete
    "a TensorBoard that is deleted as the job ends": (
        "tensorflow list: tensorboard",
        [
            *["reconcile, pods denied" + LATE, "reject worker-0", "delete Service tfjob-76no"],
            *["delete Service tensorboard-76no", "run master-0", "exit 0 master-0"],
        ],
    ),
}
"""Paths on which explorations have found defects."""


@pytest.mark.parametrize("name", FOUND)
def test_a_defect_stays_away(name: str) -> None:
    scenario, path = FOUND[name]
    Explorer(_scenario(scenario)).replay(path)


# --- what the exploration finds in a broken product


def _scenario(name: str) -> Scenario:
    return next(scenario for scenario in SCENARIOS if scenario.name == name)


def _counts_again(next_actions: Callable[..., Any]) -> Callable[..., Any]:
    """Counts a failure from the status instead of from the pod's attempt."""

    def changed(job: Any, observed: Any, progress: Any, now: Any) -> Any:
        found = next_actions(job, observed, progress, now)
        failed = [pod for pod in observed.pods if pod_ends.has_failed(pod) and not pod.disrupted and not pod.deleting]
        counts = {retries.key(pod.type, pod.index): 1 for pod in failed}
        again = {name: progress.retries.get(name, 0) + counts[name] for name in counts}
        return dataclasses.replace(found, retries={**found.retries, **again})

    return changed


def _does_not_wait_for_the_last_attempt(next_actions: Callable[..., Any]) -> Callable[..., Any]:
    """Creates the pods of a new attempt where replicas have none, while others still have their old ones."""

    def changed(job: Any, observed: Any, progress: Any, now: Any) -> Any:
        found = next_actions(job, observed, progress, now)
        starts = replicas.next_actions(job, observed, progress, now).starts
        return found if found.begins else dataclasses.replace(found, starts=starts)

    return changed


BROKEN: dict[str, tuple[Any, str, Callable[[Any], Any], str, str]] = {
    "forgets the completed replicas": (
        situation,
        "_completed_of",
        lambda _: lambda job: {},
        "tensorflow list: parameter server",
        "is forgotten",
    ),
    "counts a failure twice": (
        replicas,
        "next_actions",
        _counts_again,
        "tensorflow map: exit code",
        "the retries of",
    ),
    "does not look again after a deletion": (
        at_rest,
        "soonest",
        lambda _: lambda wait, deletions: wait,
        "pytorch: on failure",
        "nothing triggers a reconcile",
    ),
    "does not clean up": (
        clean_pod_policy,
        "cleanup_targets",
        lambda _: lambda job, observed, kept=(): (),
        "pytorch elastic: exit code",
        "still there",
    ),
    "starts a finished job again": (
        plan,
        "has_finished",
        lambda has_finished: lambda job: has_finished(job) and job.status["observedGeneration"] == job.generation,
        "caffe2: never",
        "a finished job gets a pod",
    ),
    "takes pods of another spec for current ones": (
        situation,
        "_of_this_spec",
        lambda _: lambda job, observed, hashes: observed,
        "mxnet: mpba",
        "succeeded|completed|of its spec",
    ),
    "restarts one replica instead of the job": (
        restart_job,
        "next_actions",
        lambda _: replicas.next_actions,
        "failure rules, mxnet: restart job",
        "the retries of|a rule restarts the job",
    ),
    "begins an attempt beside the pods of the last one": (
        restart_job,
        "next_actions",
        _does_not_wait_for_the_last_attempt,
        "failure rules, pytorch: restart job, ttl",
        "beside .* of an earlier one|a second pod of a rank",
    ),
    "counts what a rule ignores": (
        replicas,
        "ACTION_IGNORE",
        lambda _: "",
        "failure rules, mxnet: ignore, restart",
        "the retries of",
    ),
    "ignores the limit of a replica": (
        max_restarts_per_replica,
        "over_limit",
        lambda _: lambda *given: None,
        "failure rules, mxnet: replica limit",
        "exceeded its limit",
    ),
    "starts all types at once": (
        startup_policy,
        "waits",
        lambda _: lambda *given: (),
        "startup policy: in order",
        "before the types that they wait for",
    ),
    "keeps the autoscaler of a job that rests": (
        owned_objects,
        "at_rest",
        lambda _: tuple,
        "pytorch elastic: metrics",
        "has .'HorizontalPodAutoscaler",
    ),
    "never looks again": (
        reconciler,
        "conclude",
        lambda conclude: lambda *given: dataclasses.replace(conclude(*given), requeue_after=None),
        "pytorch: exit code, ttl",
        "nothing triggers a reconcile",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_an_exploration_finds_a_defect(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, function, change, scenario, message = BROKEN[name]
    monkeypatch.setattr(module, function, change(getattr(module, function)))
    with pytest.raises(Violation, match=message):
        Explorer(_scenario(scenario)).explore(10_000)


def test_a_violation_has_a_short_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(situation, "_completed_of", lambda job: {})
    scenario = _scenario("tensorflow list: parameter server")
    with pytest.raises(Violation) as raised:
        Explorer(scenario).explore(10_000)
    path = [line.partition(". ")[2] for line in str(raised.value).splitlines()[1:]]
    assert 0 < len(path) <= 8, path
    for number in range(len(path)):
        Explorer(scenario).replay(path[:number])
    with pytest.raises(Violation):
        Explorer(scenario).replay(path)


def test_the_same_seed_visits_the_same_states() -> None:
    scenario = _scenario("caffe2: never")
    first, second = (dataclasses.replace(Explorer(scenario).explore(300), seconds=0) for _ in range(2))
    assert first == second


def test_the_command_prints_the_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["200", "--only", "caffe2", "--seed", "1"]) == 0
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[0] for row in rows] == ["| caffe2", "| all"]
    assert int(rows[-1][2]) >= 200


def test_the_command_fails_with_the_path_to_a_violation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(at_rest, "soonest", lambda wait, deletions: wait)
    assert main(["3000", "--only", "pytorch: on failure"]) == 1
    assert "nothing triggers a reconcile" in capsys.readouterr().err
