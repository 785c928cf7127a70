"""Jobs whose first success target has no replica: the next type decides, as in training-operator, or apply refuses them."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import any_framework
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from support.builders import (
    MXNET,
    PADDLE,
    PYTORCH,
    TENSORFLOW,
    XGBOOST,
    Resource,
    mxjob,
    paddlejob,
    pytorchjob,
    tfjob,
    xgboostjob,
)
from support.fake_cluster import FakeCluster


def mx(**counts: int) -> Resource:
    job = mxjob().v1().without("Scheduler")
    for type_, count in counts.items():
        job = job.replicas(type_.capitalize(), count)
    return job.resource()


def played(job: Resource, framework: Framework = MXNET) -> FakeCluster:
    fake_cluster = FakeCluster(job, framework)
    fake_cluster.start()
    return fake_cluster


def exits(fake_cluster: FakeCluster, index: int, code: int) -> Any:
    fake_cluster.exit("worker", index, code)
    fake_cluster.settle()
    return fake_cluster.status


@pytest.mark.parametrize("others", [{}, {"scheduler": 0}, {"scheduler": 0, "server": 0}, {"server": 1}])
def test_an_mxjob_without_scheduler_succeeds_when_all_its_workers_have(others: dict[str, int]) -> None:
    fake_cluster = played(mx(**others, worker=2))
    assert fake_cluster.status["state"] == "Running"
    assert exits(fake_cluster, 0, 0)["state"] == "Running"
    assert exits(fake_cluster, 1, 0)["state"] == "Succeeded"


def test_it_fails_with_the_exit_code_of_a_worker() -> None:
    status = exits(played(mx(scheduler=0, worker=2)), 1, 4)
    assert (status["state"], status["failure"]["exitCode"]) == ("Failed", 4)


def test_its_processes_look_for_no_scheduler() -> None:
    fake_cluster = played(mx(scheduler=0, worker=1))
    (pod,) = fake_cluster.pods.values()
    names = [variable["name"] for variable in pod["spec"]["containers"][0]["env"]]
    assert "MX_CONFIG" in names
    assert not any(name.startswith("DMLC_PS") for name in names)


def test_a_scheduler_decides_where_the_job_has_one() -> None:
    fake_cluster = played(mxjob().v1().workers(1).resource())
    assert exits(fake_cluster, 0, 0)["state"] == "Running"


def test_a_named_worker_decides_alone() -> None:
    job = mxjob().v1().without("Scheduler").workers(2).chief("Worker", 1).resource()
    assert exits(played(job), 1, 0)["state"] == "Succeeded"


def test_the_kind_dljob_does_the_same() -> None:
    framework = any_framework.adapt(MXNET)
    assert framework.flavors[0].succeeds_together[0] == "Worker"


@pytest.mark.parametrize("flavor", ["v1alpha1", "fioravanzo", "mpba"])
def test_the_list_layouts_need_a_scheduler_as_their_operators_did(flavor: str) -> None:
    with pytest.raises(InvalidJob, match="it needs exactly 1 Scheduler"):
        parse_job(mxjob().flavor(flavor).without("Scheduler").workers(1).resource(), MXNET)


def test_servers_alone_decide_nothing() -> None:
    with pytest.raises(InvalidJob, match="no replica that decides when it succeeds: add a Scheduler or Worker"):
        parse_job(mx(server=2), MXNET)


@pytest.mark.parametrize(
    ("job", "framework", "decides"),
    [
        (tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=0, worker=1), TENSORFLOW, "Worker"),
        (tfjob("kubeflow.org/v1", "tfReplicaSpecs", master=0, worker=1), TENSORFLOW, "Worker"),
        (pytorchjob(worker=2), PYTORCH, "Worker"),
        (paddlejob(worker=2), PADDLE, "Worker"),
    ],
)
def test_other_frameworks_without_their_first_type(job: Resource, framework: Framework, decides: str) -> None:
    assert parse_job(job, framework).success_target.type == decides


def test_an_xgboostjob_needs_its_master_as_in_training_operator() -> None:
    with pytest.raises(InvalidJob, match="it needs exactly 1 Master"):
        parse_job(xgboostjob(master=0, worker=1), XGBOOST)
