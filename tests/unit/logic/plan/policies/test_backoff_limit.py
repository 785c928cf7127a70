"""``runPolicy.backoffLimit``."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.backoff_limit import exceeded
from support.builders import mxjob, pod_of


@pytest.mark.parametrize(
    ("limit", "retries", "in_place", "over"),
    [(None, 9, 9, False), (0, 0, 0, False), (0, 1, 0, True), (0, 0, 1, True), (3, 2, 1, False), (3, 2, 2, True)],
)
def test_backoff_limit_counts_new_pods_and_restarts_in_place(
    limit: int | None, retries: int, in_place: int, over: bool
) -> None:
    job = mxjob().workers(1).run_policy(backoffLimit=limit).job()
    pod = pod_of(job, "worker")
    pods = [(pod.restarted(1, in_place) if in_place else pod.running()).view()]
    assert bool(exceeded(job, {"worker-0": retries}, pods)) is over


def test_over_the_limit_the_last_error_is_reported() -> None:
    job = mxjob().workers(2).run_policy(backoffLimit=0).job()
    pods = [pod_of(job, "worker", 0).failed(1, seconds=1).view(), pod_of(job, "worker", 1).failed(2, seconds=5).view()]
    found = exceeded(job, {"worker-0": 1}, pods)
    assert found is not None
    assert (found.reason, found.pod, found.exit_code) == ("BackoffLimitExceeded", "digits-worker-1", 2)
    assert "backoffLimit allows 0 restarts; last: container mxnet of pod digits-worker-1 exited with 2" in found.message


@pytest.mark.parametrize("ended", ["deleting", "disrupted"])
def test_over_the_limit_a_pod_that_did_not_fail_by_itself_is_not_reported(ended: str) -> None:
    job = mxjob().workers(2).run_policy(backoffLimit=0).job()
    failed = pod_of(job, "worker", 0).failed(1, seconds=1)
    stopped = pod_of(job, "worker", 1).failed(143, seconds=5)
    stopped = stopped.deleting() if ended == "deleting" else stopped.disrupted()
    found = exceeded(job, {"worker-0": 1}, [failed.view(), stopped.view()])
    assert found is not None
    assert (found.pod, found.exit_code) == ("digits-worker-0", 1)


def test_over_the_limit_with_no_pod_left() -> None:
    found = exceeded(mxjob().run_policy(backoffLimit=0).job(), {"worker-0": 1}, [])
    assert found is not None
    assert (found.pod, found.exit_code) == ("", None)
