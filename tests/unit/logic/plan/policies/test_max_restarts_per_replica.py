"""runPolicy.maxRestartsPerReplica: which replica exceeds it, and what the job's failure says."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.max_restarts_per_replica import (
    over_limit,
)
from support.builders import MXJob, Pod, mxjob, pod_of


def limited(limit: int | None = 2) -> MXJob:
    return mxjob().v1().workers(2).restart("OnFailure").run_policy(maxRestartsPerReplica=limit)


JOB = limited().job()


def worker(index: int = 0) -> Pod:
    return pod_of(JOB, "worker", index)


TEXT = "replica worker-0 ended 3 times with an error, spec.runPolicy.maxRestartsPerReplica allows 2 restarts"
LAST = f"{TEXT}; last: container mxnet of pod digits-worker-0 exited with 5 (Error)"


@pytest.mark.parametrize(
    ("retries", "pods", "message"),
    [
        pytest.param({}, [], None, id="nothing"),
        pytest.param({"worker-0": 2}, [], None, id="as many as it allows"),
        pytest.param({"worker-0": 2, "worker-1": 2}, [], None, id="each counts alone"),
        pytest.param({"worker-2": 3}, [], None, id="not a replica of the job"),
        pytest.param({"worker-0": 3}, [], TEXT, id="without a pod"),
        pytest.param({"worker-0": 2}, [worker().restarted(5)], LAST, id="by a new pod and in place"),
        pytest.param({"worker-0": 2}, [worker().restarted(5).deleting()], None, id="its pod is being deleted"),
        pytest.param({"worker-0": 2}, [worker(1).restarted(5)], None, id="another one's pod"),
        pytest.param({}, [worker().restarted(5, times=3)], LAST, id="in place"),
        pytest.param({"worker-0": 3}, [worker().failed(5)], LAST, id="and its pod has failed"),
        pytest.param({"worker-0": 3}, [worker()], TEXT, id="its pod has not run"),
        pytest.param({"worker-0": 3}, [worker().exited(0)], TEXT, id="its pod has succeeded since"),
        pytest.param({"worker-0": 3}, [worker().failed(5).disrupted()], TEXT, id="its pod was evicted since"),
    ],
)
def test_which_job_fails(retries: dict[str, int], pods: list[Pod], message: str | None) -> None:
    found = over_limit(JOB, retries, [pod.view() for pod in pods])
    assert (found.message if found else None) == message
    if found:
        assert (found.reason, found.exit_code) == ("MaxRestartsPerReplicaExceeded", 5 if message == LAST else None)
        assert found.pod == ("digits-worker-0" if pods else "")


def test_without_a_limit_none_fails() -> None:
    assert over_limit(limited(None).job(), {"worker-0": 99}, []) is None


def test_a_limit_of_0() -> None:
    job = limited(0).job()
    assert over_limit(job, {}, []) is None
    assert over_limit(job, {"worker-1": 1}, []) is not None
