"""When a replica, and when a job, has succeeded."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.pod_ends import has_succeeded, is_done
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.success import succeeded, unfinished
from support.builders import PYTORCH, Pod, echo_framework, echojob, mxjob, observed, pod_of, pods_of, pytorchjob

JOB = mxjob().v1().workers(2).restart("OnFailure").job()
ALWAYS = mxjob().v1().restart("Always").job()


def worker() -> Pod:
    return pod_of(JOB, "worker")


@pytest.mark.parametrize(
    ("pod", "has", "done"),
    [
        (worker(), False, False),
        (worker().running(), False, False),
        (worker().succeeded(), True, True),
        (worker().exited(0, "Completed"), True, True),
        (worker().exited(1), False, False),
        (worker().failed(1), False, False),
        (worker().restarted(1), False, False),
        (worker().refused_by_node(), False, False),
        (pod_of(ALWAYS, "scheduler").restarted(0, reason="Completed"), True, False),
        (pod_of(ALWAYS, "scheduler").exited(0), True, False),
    ],
)
def test_success_of_a_replica(pod: Pod, has: bool, done: bool) -> None:
    assert (has_succeeded(pod.view()), is_done(pod.view())) == (has, done)


def test_a_sidecar_that_fails_the_pod_does_not_undo_the_success() -> None:
    pod = worker().exited(0).change(lambda p: p["status"].update(phase="Failed"))
    assert (has_succeeded(pod.view()), is_done(pod.view())) == (True, True)


@pytest.mark.parametrize(
    "pod", [worker().succeeded().deleting(), worker().exited(0).deleting(), worker().exited(0).disrupted()]
)
def test_a_terminated_program_that_exits_with_0_has_not_succeeded(pod: Pod) -> None:
    assert (has_succeeded(pod.view()), is_done(pod.view())) == (False, False)


@pytest.mark.parametrize(
    ("completed", "names"),
    [
        ({}, ["scheduler-0", "worker-0", "worker-1"]),
        ({"worker": set()}, ["scheduler-0", "worker-0", "worker-1"]),
        ({"worker": {1, 7}}, ["scheduler-0", "worker-0"]),
        ({"scheduler": {0}, "worker": {0}}, ["worker-1"]),
        ({"server": {0}}, ["scheduler-0", "worker-0", "worker-1"]),
    ],
)
def test_the_pods_of_unfinished_replicas(completed: dict[str, set[int]], names: list[str]) -> None:
    found = unfinished(observed(JOB, [pod.running() for pod in pods_of(JOB)]), completed)
    assert [f"{pod.type}-{pod.index}" for pod in found.pods] == names


# --- the job


def test_the_scheduler_decides() -> None:
    done = [pod_of(JOB, "worker", i).succeeded() for i in (0, 1)]
    running = pod_of(JOB, "scheduler").running()
    assert not succeeded(JOB, observed(JOB, [running, *done]), {})
    assert succeeded(JOB, observed(JOB, [pod_of(JOB, "scheduler").succeeded()]), {})


def test_the_chief_of_the_termination_policy_decides() -> None:
    job = mxjob().v1().workers(2).chief("Worker", 1).job()
    for index, expected in ((0, False), (1, True)):
        seen = observed(job, [pod_of(job, "worker", index).succeeded()])
        assert succeeded(job, seen, {}) is expected


def test_completed_replicas_count_without_their_pods() -> None:
    assert succeeded(JOB, observed(JOB), {"scheduler": {0}})
    assert not succeeded(JOB, observed(JOB), {"worker": {0, 1}})


@pytest.mark.parametrize(
    ("succeeded_now", "completed", "expected"),
    [((), {}, False), ((1,), {}, True), ((), {"worker": {0}}, True), ((), {"master": {0}}, False)],
)
def test_one_replica_of_an_elastic_job_is_enough(
    succeeded_now: tuple[int, ...], completed: dict[str, set[int]], expected: bool
) -> None:
    job = parse_job(pytorchjob(worker=3, elasticPolicy={"minReplicas": 1}), PYTORCH)
    pods = [pod_of(job, "worker", index, framework=PYTORCH).succeeded() for index in succeeded_now]
    assert succeeded(job, observed(job, pods), completed) is expected


def test_all_processes_of_a_local_job_must_succeed() -> None:
    job = mxjob().v1alpha1().without("Scheduler").workers(2).option(jobMode="local").job()
    first, second = (pod_of(job, "worker", i).succeeded() for i in (0, 1))
    assert not succeeded(job, observed(job, [first]), {})
    assert succeeded(job, observed(job, [second]), {"worker": {0}})


def test_a_framework_that_waits_for_all() -> None:
    framework = echo_framework(success_target=["Follower"], succeeds_by="all")
    job = parse_job(echojob(2), framework)
    assert not succeeded(job, observed(job), {"follower": {0}})
    assert succeeded(job, observed(job), {"follower": {0, 1}})
