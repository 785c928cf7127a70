"""The restart delay of a failed replica."""

from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.backoff import delay, remaining_delay
from support.builders import Pod, at, mxjob, pod_of

JOB = mxjob().v1alpha1().workers(1).restart("Never").job()


@pytest.mark.parametrize(("attempt", "seconds"), [(0, 1), (1, 2), (2, 4), (8, 256), (9, 300), (100, 300), (10**9, 300)])
def test_delay_doubles_up_to_the_kubelets_own(attempt: int, seconds: float) -> None:
    assert delay(attempt) == seconds


def failed(attempt: int = 3) -> Pod:
    return pod_of(JOB, "worker", 0, attempt).failed(1, seconds=10)


@pytest.mark.parametrize(("now", "left"), [(10, 8), (12, 6), (18, 0), (100, 0)])
def test_counted_from_the_end_of_the_container(now: float, left: float) -> None:
    assert remaining_delay(failed().view(), at(now)) == left


@pytest.mark.parametrize(("now", "left"), [(5, 8), (12, 1), (13, 0)])
def test_counted_from_the_pods_creation_where_nothing_ran(now: float, left: float) -> None:
    """Otherwise the operator would create hundreds of pods a second for a node that rejects them."""
    pod = pod_of(JOB, "worker", 0, 3).refused_by_node().created(5)
    assert remaining_delay(pod.view(), at(now)) == left


def test_no_delay_where_no_time_is_known() -> None:
    pod = dataclasses.replace(pod_of(JOB, "worker", 0, 3).refused_by_node().view(), created="")
    assert remaining_delay(pod, at(5)) == 0


@pytest.mark.parametrize("behind", [0, 1, 7, 8, 9, 600, 10**8])
def test_an_operator_whose_clock_is_behind_waits_about_twice_as_long_at_most(behind: float) -> None:
    """One whose clock was 10 minutes behind restarted nothing for 10 minutes."""
    pod = failed().created(5)
    real = 10.0
    for _ in range(20):
        wait = remaining_delay(pod.view(), at(real - behind))
        if wait == 0:
            break
        assert 0 < wait <= 8
        real += wait
    lived = 10 - 5
    assert real <= 10 + 2 * 8 + lived


@pytest.mark.parametrize(("now", "left"), [(-3, 8), (-4, 0), (-600, 0)])
def test_an_operator_whose_clock_is_behind_by_more_than_the_delay_does_not_wait(now: float, left: float) -> None:
    assert remaining_delay(failed().created(5).view(), at(now)) == left


@pytest.mark.parametrize(("clock", "now", "left"), [(610, 12, 1), (610, 13, 0), (-600, 5, 8), (-600, 13, 0)])
def test_the_clock_of_a_node_that_is_wrong_changes_little(clock: float, now: float, left: float) -> None:
    """A node 10 minutes ahead made a replica wait 601 s instead of 1 s; one that is behind let it wait not at all."""
    pod = pod_of(JOB, "worker", 0, 3).failed(1, seconds=clock).created(5)
    assert remaining_delay(pod.view(), at(now)) == left
