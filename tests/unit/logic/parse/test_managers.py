"""Jobs of MultiKueue: in the manager cluster the operator leaves them alone, in the worker cluster it keeps them."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Plan
from support.builders import mxjob
from support.fake_cluster import FakeCluster

MULTIKUEUE = "kueue.x-k8s.io/multikueue"


@pytest.mark.parametrize("manager", [MULTIKUEUE, "example.com/other"])
def test_an_invalid_job_of_another_controller_is_left_alone(manager: str) -> None:
    job = mxjob().v1().scheduler(2).run_policy(managedBy=manager, ttlSecondsAfterFinished=0)
    assert FakeCluster(job).step() == Plan()


@pytest.mark.parametrize("manager", ["", "kubeflow.org/training-operator", "dljob.operator/dljob-operator"])
def test_an_invalid_job_of_this_operator_fails(manager: str) -> None:
    assert FakeCluster(mxjob().v1().scheduler(2).run_policy(managedBy=manager)).settle()[0].status


@pytest.mark.parametrize("schedulers", [1, 2])
def test_a_copy_of_multikueue_outlives_its_time_to_live(schedulers: int) -> None:
    """Also an invalid one, of two schedulers: its manager cluster has to see the end."""
    resource = mxjob().v1().scheduler(schedulers).run_policy(ttlSecondsAfterFinished=0).resource()
    resource["metadata"]["labels"] = {"kueue.x-k8s.io/multikueue-origin": "multikueue"}
    fake_cluster = FakeCluster(resource)
    if schedulers == 1:
        fake_cluster.start()
        fake_cluster.exit("scheduler", 0, 0)
    fake_cluster.settle()
    fake_cluster.advance(60)
    fake_cluster.settle()
    assert fake_cluster.status["state"] in ("Succeeded", "Failed")
    assert not fake_cluster.is_deleted
