"""The action RestartJob of podFailurePolicy: the attempts of the job, and the pods of the earlier ones."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.spec_hash import SpecHashes, TypeHashes
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import restart_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.replicas import Progress
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState
from support.builders import at, mxjob, pod_of

HASHES = SpecHashes({"scheduler": TypeHashes("5c"), "worker": TypeHashes("40")})
RULE = {"action": "RestartJob", "onExitCodes": {"operator": "In", "values": [3]}}
JOB = mxjob().v1().workers(3).restart("Never").run_policy(podFailurePolicy={"rules": [RULE]}).job()


def worker(spec_hash: str, index: int = 0, **changes: Any) -> PodState:
    view = pod_of(JOB, "worker", index).running().view()
    return dataclasses.replace(view, spec_hash=spec_hash, **changes)


def failed(spec_hash: str, code: int, index: int = 0) -> PodState:
    return dataclasses.replace(pod_of(JOB, "worker", index).failed(code).view(), spec_hash=spec_hash)


def test_the_first_attempt_has_the_hashes_of_the_spec() -> None:
    assert [HASHES.of_attempt(0).of(type_, 0) for type_ in ("Scheduler", "Worker", "Server")] == ["5c", "40", None]
    assert [HASHES.of_attempt(2).of(type_, 0) for type_ in ("scheduler", "worker", "server")] == ["5c-2", "40-2", None]


@pytest.mark.parametrize(
    ("spec_hash", "attempt"),
    [
        ("40", 0),
        ("40-1", 1),
        ("40-12", 12),
        ("40-123456789", 123456789),
        ("40-1234567890", None),
        ("40-x", None),
        ("40-1-1", None),
        ("41", None),
        ("41-1", None),
        ("5c-1", None),
        ("", None),
    ],
)
def test_the_attempt_of_a_worker(spec_hash: str, attempt: int | None) -> None:
    assert restart_job.attempt_of(worker(spec_hash), HASHES) == attempt


@pytest.mark.parametrize(("index", "attempt"), [(0, 2), (1, 2), (2, None)])
def test_the_attempt_of_a_pod_of_a_group(index: int, attempt: int | None) -> None:
    """Replicas 0 and 1 have a template of their own, and with it another hash."""
    grouped = SpecHashes({"worker": TypeHashes("40", (("large", 2, "41"),))})
    assert restart_job.attempt_of(worker("41-2", index), grouped) == attempt
    assert restart_job.current_attempt(Observed((worker("41-2", index),)), grouped, 0) == (attempt or 0)


@pytest.mark.parametrize(
    ("recorded", "pods", "expected"),
    [
        (0, [], 0),
        (2, [], 2),
        (0, [worker("40")], 0),
        (0, [worker("40-1"), worker("40-2"), worker("40")], 2),
        (3, [worker("40-2")], 3),
        (1, [worker("40-2", deleting="2026-01-02T12:00:30Z")], 1),
        (1, [worker("41-2")], 1),
    ],
)
def test_the_current_attempt_is_that_of_the_newest_pods_that_stay(
    recorded: int, pods: list[PodState], expected: int
) -> None:
    assert restart_job.current_attempt(Observed(tuple(pods)), HASHES, recorded) == expected


def next_actions(pods: list[PodState], attempt: int, now: float = 0, **progress: Any) -> restart_job.ReplicaActions:
    known = Progress(HASHES.of_attempt(attempt), **{"retries": {}, "completed": {}, "attempt": attempt, **progress})
    return restart_job.next_actions(JOB, Observed(tuple(pods)), known, at(now))


def test_a_failure_begins_the_next_attempt_and_deletes_nothing_yet() -> None:
    cause = failed("40-1", 3, 1)
    found = next_actions([worker("40-1"), cause], 1, retries={"job": 1, "worker-0": 2}, ignored={"worker-2": 4})
    assert (found.begins, found.restarted, found.wait) == (2, (cause,), 0.0)
    assert (found.retries, found.ignored) == ({"job": 2, "worker-0": 2}, {"worker-2": 4})
    assert (found.starts, found.deletions) == ((), ())


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(failed("40-1", 4), id="another exit code"),
        pytest.param(failed("40", 3), id="of the attempt before"),
        pytest.param(failed("41-1", 3), id="of another spec"),
        pytest.param(dataclasses.replace(failed("40-1", 3), index=3), id="not a replica of the job"),
    ],
)
def test_what_begins_no_attempt(pod: PodState) -> None:
    assert next_actions([pod], 1).begins == 0


def test_no_pod_is_created_before_those_of_the_attempt_before_are_gone() -> None:
    scheduler = dataclasses.replace(pod_of(JOB, "scheduler").running().view(), spec_hash="5c-1")
    edited = worker("41", 2)
    before = [worker("40", 0), worker("40", 1, deleting="2026-01-02T12:00:30Z")]
    found = next_actions([scheduler, edited, *before], 1)
    assert [one.name for one in found.deletions] == [edited.name, before[0].name]
    assert (found.starts, found.wait) == ((), None)
    assert [start.index for start in next_actions([scheduler], 1).starts] == [0, 1, 2]


@pytest.mark.parametrize(("attempt", "pod_attempt", "delay"), [(1, 0, 1), (3, 0, 4), (3, 5, 32)])
def test_the_delay_grows_with_the_attempts_of_the_job_and_of_the_replica(
    attempt: int, pod_attempt: int, delay: float
) -> None:
    """A failed pod keeps its place until then; the others are deleted at once."""
    earlier = "40" if attempt == 1 else f"40-{attempt - 1}"
    pod = dataclasses.replace(failed(earlier, 3, 1), attempt=pod_attempt)
    found = next_actions([worker(earlier), pod], attempt)
    assert ([one.name for one in found.deletions], found.wait) == ([worker(earlier).name], delay)
    later = next_actions([pod], attempt, now=delay)
    assert ([one.name for one in later.deletions], later.wait) == ([pod.name], None)
