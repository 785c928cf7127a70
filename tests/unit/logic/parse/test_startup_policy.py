"""runPolicy.startupPolicy: the order in which a job's replica types start."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from support.builders import MPI, MXNET, TENSORFLOW, MXJob, echo_framework, echojob, mpijob, mxjob, tfjob
from support.fake_cluster import FakeCluster

PATH = "spec.runPolicy.startupPolicy"


def job_with(**policy: Any) -> MXJob:
    return mxjob().v1().servers(1).workers(1).restart("OnFailure").run_policy(startupPolicy=policy)


def created(cluster: FakeCluster) -> list[str]:
    """The pods that the next reconcile creates, which it does."""
    return sorted(pod["metadata"]["name"].removeprefix("digits-") for pod in cluster.step().pods)


def depends(**conditions: str) -> dict[str, Any]:
    """The worker waits for these types."""
    return {"dependsOn": {"worker": [{"replicaType": t, "condition": c} for t, c in conditions.items()]}}


def test_in_order() -> None:
    cluster = FakeCluster(job_with(startupPolicyOrder="InOrder"))
    assert created(cluster) == ["scheduler-0"]
    assert cluster.status["reason"] == "Server starts once all replicas of Scheduler are ready"
    assert created(cluster) == []
    cluster.run("scheduler", 0)
    assert created(cluster) == ["server-0"]
    assert cluster.status["reason"] == "Worker starts once all replicas of Server are ready"
    cluster.run("server", 0)
    assert created(cluster) == ["worker-0"]
    cluster.run("worker", 0)
    cluster.settle()
    assert (cluster.status["phase"], cluster.status["reason"]) == ("Running", "")


@pytest.mark.parametrize("policy", [None, {}, {"startupPolicyOrder": "AnyOrder"}, {"dependsOn": {}}])
def test_all_at_once(policy: dict[str, Any] | None) -> None:
    assert created(FakeCluster(job_with().run_policy(startupPolicy=policy))) == ["scheduler-0", "server-0", "worker-0"]


@pytest.mark.parametrize(("condition", "is_enough"), [("Ready", False), ("Running", True), ("Complete", False)])
def test_a_pod_that_runs_and_is_not_ready(condition: str, is_enough: bool) -> None:
    cluster = FakeCluster(job_with(**depends(Server=condition)))
    assert created(cluster) == ["scheduler-0", "server-0"]
    cluster.run("server", 0)
    cluster.pod("server", 0)["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    assert created(cluster) == (["worker-0"] if is_enough else [])


@pytest.mark.parametrize("condition", ["Ready", "Running", "Complete"])
def test_a_replica_that_has_completed(condition: str) -> None:
    cluster = FakeCluster(job_with(**depends(server=condition)))
    created(cluster)
    cluster.run("server", 0)
    cluster.exit("server", 0, 0)
    assert created(cluster) == ["worker-0"]


def test_several_dependencies() -> None:
    cluster = FakeCluster(job_with(**depends(Scheduler="Ready", Server="Ready")))
    assert created(cluster) == ["scheduler-0", "server-0"]
    cluster.run("scheduler", 0)
    assert created(cluster) == []
    cluster.run("server", 0)
    assert created(cluster) == ["worker-0"]


def test_the_order_of_the_framework_applies_too() -> None:
    types = {"Leader": {"maximum": 1}, "Follower": {"starts_after": {"Leader": "ready"}}}
    job = echojob(1, runPolicy={"startupPolicy": {"dependsOn": {"Follower": [{"replicaType": "Leader"}]}}})
    cluster = FakeCluster(job, echo_framework(replica_types=types))
    assert [pod["metadata"]["name"] for pod in cluster.step().pods] == ["hello-leader-0"]


def test_the_pods_of_a_restarted_job_keep_the_order() -> None:
    cluster = FakeCluster(job_with(startupPolicyOrder="InOrder").run_policy(restartScope="Job"))
    for type_ in ("scheduler", "server", "worker"):
        cluster.step()
        cluster.run(type_, 0)
    cluster.settle()
    cluster.exit("worker", 0, 1)
    cluster.settle()
    cluster.advance(400)
    cluster.settle()
    assert cluster.replicas() == ["scheduler-0"]


def test_a_pod_that_exists_stays() -> None:
    cluster = FakeCluster(job_with(**depends(Server="Ready")))
    created(cluster)
    cluster.run_all()
    assert created(cluster) == ["worker-0"]
    cluster.pod("server", 0)["status"]["conditions"] = []
    assert cluster.planned().deletions == ()


def test_a_pod_that_exists_is_not_reported_as_waiting() -> None:
    """Neither while a replica of the earlier type restarts, nor where the policy is added to a running job."""
    restarting = FakeCluster(job_with())
    restarting.start()
    restarting.pod("server", 0)["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    edited = FakeCluster(job_with())
    edited.start()
    for cluster, policy in ((restarting, {"startupPolicyOrder": "InOrder"}), (edited, depends(Server="Complete"))):
        cluster.edit(lambda spec, p=policy: spec["runPolicy"].update(startupPolicy=p))
        cluster.settle()
        assert (cluster.status["phase"], cluster.status["reason"]) == ("Running", "")
        cluster.user_deletes("digits-worker-0")
        cluster.settle()
        assert cluster.replicas() == ["scheduler-0", "server-0"]
        assert str(cluster.status["reason"]).startswith("Worker starts once all replicas of Server are ")


def errors(policy: Any) -> list[str]:
    with pytest.raises(InvalidJob) as caught:
        parse_job(mxjob().v1().servers(1).workers(1).run_policy(startupPolicy=policy).resource(), MXNET)
    return list(caught.value.problems)


def on(*entries: Any) -> dict[str, Any]:
    return {"dependsOn": {"Worker": list(entries)}}


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([], f"{PATH} must be a map with startupPolicyOrder or dependsOn"),
        ({"order": "InOrder"}, f"{PATH}.order is unknown: use startupPolicyOrder or dependsOn"),
        (
            on({"replicaType": "Server"}, {"replicaType": "server", "condition": "Running"}),
            f"{PATH}.dependsOn.Worker[1].replicaType: Server is listed twice: keep one condition",
        ),
        ({"startupPolicyOrder": "Ordered"}, f"{PATH}.startupPolicyOrder: 'Ordered' is none of AnyOrder, InOrder"),
        (
            {"startupPolicyOrder": "InOrder", "dependsOn": {}},
            f"{PATH} has InOrder and dependsOn: keep one of them, or use AnyOrder",
        ),
        ({"dependsOn": []}, f"{PATH}.dependsOn must be a map of a replica type to a list of those that it waits for"),
        ({"dependsOn": {"Worker": {}}}, f"{PATH}.dependsOn.Worker must be a list of replicaType and condition"),
        (on("Server"), f"{PATH}.dependsOn.Worker[0] must be a map with replicaType and condition"),
        (
            on({"replicaType": "Tuner"}),
            f"{PATH}.dependsOn.Worker[0].replicaType: the job has no replicas of type 'Tuner'; it has Scheduler, Server, "
            "Worker",
        ),
        (
            {"dependsOn": {"PS": [{"replicaType": "Worker"}]}},
            f"{PATH}.dependsOn.PS: the job has no replicas of type 'PS'; it has Scheduler, Server, Worker",
        ),
        (
            on({"replicaType": "Server", "condition": "Done"}),
            f"{PATH}.dependsOn.Worker[0].condition: 'Done' is none of Ready, Running, Complete",
        ),
        (
            on({"replicaType": "Worker"}),
            f"{PATH}.dependsOn: Worker wait for one another: remove one of the dependencies",
        ),
        (
            {"dependsOn": {"Worker": [{"replicaType": "Server"}], "Server": [{"replicaType": "Worker"}]}},
            f"{PATH}.dependsOn: Server, Worker wait for one another: remove one of the dependencies",
        ),
    ],
)
def test_what_is_refused(policy: Any, message: str) -> None:
    assert errors(policy) == [message]


def test_each_unknown_type_is_refused_by_itself() -> None:
    said = [text.partition(":")[0] for text in errors(on({"replicaType": "Tuner"}, {"replicaType": "Reader"}))]
    assert said == [f"{PATH}.dependsOn.Worker[{number}].replicaType" for number in (0, 1)]


def test_each_malformed_list_is_refused_by_itself() -> None:
    assert errors({"dependsOn": {"Worker": {}, "Server": "Scheduler"}}) == [
        f"{PATH}.dependsOn.{type_} must be a list of replicaType and condition" for type_ in ("Worker", "Server")
    ]


def test_a_type_that_never_completes() -> None:
    job = tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, ps=1)
    job["spec"]["runPolicy"] = {
        "startupPolicy": {"dependsOn": {"Chief": [{"replicaType": "ps", "condition": "Complete"}]}}
    }
    with pytest.raises(InvalidJob, match="PS runs until the job ends and never completes: use Ready or Running"):
        parse_job(job, TENSORFLOW)


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        ({"startupPolicyOrder": "InOrder"}, "startupPolicyOrder"),
        ({"dependsOn": {"Worker": [{"replicaType": "Launcher"}]}}, "dependsOn"),
    ],
)
def test_an_order_against_the_one_that_the_job_asks_for(policy: dict[str, Any], field: str) -> None:
    """The launcher waits for its workers only where the MPIJob says so."""
    job = mpijob(runPolicy={"startupPolicy": policy})
    assert parse_job(job, MPI).run_policy.starts_after == {"Worker": {"Launcher": "ready"}}
    job["spec"]["launcherCreationPolicy"] = "WaitForWorkersReady"
    with pytest.raises(InvalidJob) as caught:
        parse_job(job, MPI)
    assert caught.value.problems == (
        f"{PATH}.{field}: Launcher, Worker wait for one another: remove one of the dependencies; Launcher waits in any case",
    )


@pytest.mark.parametrize(("codes", "starts"), [((0, 1), True), ((0, 1, 2), False)])
def test_a_lost_elastic_worker_delays_nothing(codes: tuple[int, ...], starts: bool) -> None:
    """Nobody restarts it, and the others go on without it, where there are others."""
    job = tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, ps=1, worker=3)
    job["spec"] |= {
        "enableDynamicWorker": True,
        "runPolicy": {"startupPolicy": {"dependsOn": {"Chief": [{"replicaType": "Worker", "condition": "Running"}]}}},
    }
    cluster = FakeCluster(job, TENSORFLOW)
    cluster.settle()
    for index in range(3):
        cluster.run("worker", index)
    lost = (2,) if starts else (0, 1, 2)
    for index in lost:
        cluster.exit("worker", index, 1)
    cluster.settle()
    assert ("chief-0" in cluster.replicas()) is starts
