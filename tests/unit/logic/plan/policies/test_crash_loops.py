"""Containers that are started again without the operator: the reason says what happens meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import crash_loops
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed
from support import builders
from support.builders import MPI, Pod, mpijob, mxjob, pod_of, pytorchjob, stamp, tfjob
from support.fake_cluster import FakeCluster

JOB = mxjob().v1().workers(2).restart("OnFailure").job()
BACK_OFF = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}


def exit_of(code: int, message: str = "no route") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": "Error", "message": message, "finishedAt": stamp(1)}}


def worker(state: Any, last: Any = None, index: int = 0, policy: str = "OnFailure", container: str = "mxnet") -> Pod:
    def change(pod: Any) -> None:
        pod["spec"]["restartPolicy"] = policy
        status = {"name": container, "restartCount": 1, "state": state, "lastState": last or {}}
        if container == "init":
            own = {"name": "mxnet", "restartCount": 0, "state": {"waiting": {"reason": "PodInitializing"}}}
            statuses = {"containerStatuses": [own], "initContainerStatuses": [status]}
        else:
            statuses = {"containerStatuses": [status]}
        pod["status"] = {"phase": "Pending" if container == "init" else "Running", **statuses}

    return pod_of(JOB, "worker", index).change(change)


def text(name: str = "mxnet", code: int = 17, pod: str = "digits-worker-0") -> str:
    return f"back-off after a failure: container {name} of pod {pod} exited with {code} (Error): no route"


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        pytest.param(worker(BACK_OFF, exit_of(17)), text(), id="back-off"),
        pytest.param(worker(exit_of(17)), text(), id="it has just ended"),
        pytest.param(worker(exit_of(3), exit_of(17)), text(code=3), id="it has ended again"),
        pytest.param(worker({"running": {}}, exit_of(17)), "", id="it runs again"),
        pytest.param(worker(exit_of(17), policy="Never"), "", id="never"),
        pytest.param(worker(exit_of(0), policy="Always"), "", id="with 0"),
        pytest.param(worker(BACK_OFF, exit_of(0), policy="Always"), "", id="back-off after 0"),
        pytest.param(worker(BACK_OFF, exit_of(17)).deleting(), "", id="it is being deleted"),
        pytest.param(worker(BACK_OFF, exit_of(17), container="init"), text("init"), id="an init container"),
        pytest.param(worker(BACK_OFF, exit_of(17), container="proxy"), "", id="a sidecar"),
    ],
)
def test_the_reason(pod: Pod, said: str) -> None:
    assert crash_loops.first(Observed((pod.view(),)), {}) == said


def test_one_of_several_stays_named() -> None:
    pods = [worker(BACK_OFF, exit_of(17), index=index).view() for index in (0, 1)]
    second = text(pod="digits-worker-1")
    assert crash_loops.first(Observed(tuple(pods)), {}) == text()
    assert crash_loops.first(Observed(tuple(pods)), {"reason": second}) == second
    assert crash_loops.first(Observed(tuple(pods[:1])), {"reason": second}) == text()


@pytest.mark.parametrize(
    ("job", "framework", "field", "type_"),
    [
        (pytorchjob(master=1, worker=1), builders.PYTORCH, "pytorchReplicaSpecs", "Worker"),
        (tfjob("kubeflow.org/v1", "tfReplicaSpecs", Worker=2), builders.TENSORFLOW, "tfReplicaSpecs", "Worker"),
        (mpijob(worker=1), MPI, "mpiReplicaSpecs", "Worker"),
        (mpijob(worker=1), MPI, "mpiReplicaSpecs", "Launcher"),
    ],
    ids=["PyTorchJob", "TFJob", "MPIJob worker", "MPIJob launcher"],
)
def test_a_job_whose_replica_crashes_says_so(job: Any, framework: Any, field: str, type_: str) -> None:
    job["spec"][field][type_]["restartPolicy"] = "OnFailure"
    fake_cluster = FakeCluster(job, framework)
    fake_cluster.start()
    assert fake_cluster.status["reason"] == ""
    fake_cluster.exit(type_.lower(), 0, 17, message="no route")
    (status,) = fake_cluster.pod(type_.lower(), 0)["status"]["containerStatuses"]
    running = status["state"]
    status["state"] = BACK_OFF
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Running"
    assert fake_cluster.status["reason"].startswith("back-off after a failure: container ")
    assert fake_cluster.status["reason"].endswith(" exited with 17 (Error): no route")
    status["state"] = running
    fake_cluster.settle()
    assert fake_cluster.status["reason"] == ""


def test_a_deadline_that_ends_a_crashing_job_has_its_words() -> None:
    fake_cluster = FakeCluster(mpijob(worker=1, runPolicy={"activeDeadlineSeconds": 60}), MPI)
    fake_cluster.start()
    fake_cluster.exit("launcher", 0, 17, message="no route")
    fake_cluster.pod("launcher", 0)["status"]["containerStatuses"][0]["state"] = BACK_OFF
    fake_cluster.advance(61)
    fake_cluster.step()
    assert fake_cluster.status["failure"]["reason"] == "DeadlineExceeded"
    assert fake_cluster.status["reason"].endswith("exited with 17 (Error): no route")
