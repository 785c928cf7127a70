"""A launcher that exits with 0 because it has lost a worker has not done the work."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import Owner
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.observed_state import build_observed_state
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import hidden_losses
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.end_order import REPORT_LAG
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.losses import Loss
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed
from support.builders import MPI, NOW, TENSORFLOW, Pod, Resource, manifest_of, mpijob, mpijob_v1, pod_of, stamp, tfjob
from support.fake_cluster import FakeCluster

START = int(NOW.timestamp())


def ended(pod: Pod, started: float, finished: float, code: int = 0) -> Pod:
    made = pod.succeeded(finished) if code == 0 else pod.failed(code, seconds=finished)

    def begin(resource: Resource) -> None:
        resource["status"]["containerStatuses"][0]["state"]["terminated"]["startedAt"] = stamp(started)

    return made.change(begin)


def launcher_of(job: DLJob) -> Pod:
    manifest = manifest_of(job, "launcher", framework=MPI)
    return Pod(manifest, manifest["spec"]["containers"][0]["name"])


def seen(job: DLJob, *pods: Pod, framework: Framework = MPI) -> Observed:
    owner = Owner("default", job.uid)
    return build_observed_state(owner, framework.container, [pod.resource() for pod in pods], [])


def loss(replica: str, seconds: int) -> Loss:
    return Loss(replica, "uid", START + seconds, "the pod was deleted", True)


@pytest.mark.parametrize(
    ("last", "started", "finished", "code", "is_hidden"),
    [
        pytest.param(loss("worker-1", 60), 0, 60, 0, True, id="in the same second"),
        pytest.param(loss("worker-1", 60), 0, 65, 0, True, id="soon after the loss"),
        pytest.param(loss("worker-1", 60), 0, 66, 0, False, id="it survived the loss"),
        pytest.param(loss("worker-1", 60), 0, 59, 0, False, id="it had ended before"),
        pytest.param(loss("worker-1", 60), 60, 62, 0, True, id="it began in the second of the loss"),
        pytest.param(loss("worker-1", 60), 61, 63, 0, False, id="it began after the loss"),
        pytest.param(loss("worker-1", 60), 0, 60, 1, False, id="it says so itself"),
        pytest.param(loss("launcher-0", 60), 0, 60, 0, False, id="its own loss"),
        pytest.param(loss("stranger-0", 60), 0, 60, 0, False, id="of a type that a tenant has written"),
        pytest.param(None, 0, 60, 0, False, id="no loss"),
    ],
)
def test_what_counts_for_nothing(last: Loss | None, started: int, finished: int, code: int, is_hidden: bool) -> None:
    job = parse_job(mpijob_v1(), MPI)
    current = seen(job, ended(launcher_of(job), started, finished, code))
    assert [pod.type for pod in hidden_losses.find(job, MPI, current, last)] == (["launcher"] if is_hidden else [])


def test_without_the_time_of_its_start_an_exit_is_believed() -> None:
    job = parse_job(mpijob_v1(), MPI)
    current = seen(job, launcher_of(job).succeeded(60))
    assert hidden_losses.find(job, MPI, current, loss("worker-1", 60)) == ()


def test_a_chief_does_not_hide_the_loss_of_its_servers() -> None:
    job = parse_job(tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, ps=1, worker=1), TENSORFLOW)
    current = seen(job, ended(pod_of(job, "chief", framework=TENSORFLOW), 0, 60), framework=TENSORFLOW)
    assert hidden_losses.find(job, TENSORFLOW, current, loss("ps-0", 60)) == ()


@pytest.mark.parametrize("make", [mpijob, mpijob_v1])
@pytest.mark.parametrize("clock_stands", [False, True])
def test_the_launcher_starts_again_and_its_next_exit_counts(make: object, *, clock_stands: bool) -> None:
    """Also by a node's clock that stands still: each launcher seems to have run at the loss."""
    cluster = FakeCluster(make(), MPI)  # type: ignore[operator]
    cluster.start()
    cluster.run_all()
    cluster.settle()
    launcher = cluster.pod("launcher", 0)["metadata"]["uid"]
    cluster.advance(60)
    cluster.user_deletes("pi-worker-1")
    cluster.exit("launcher", 0, 0)
    cluster.step()
    assert "Succeeded" not in [type_ for type_, status in cluster.conditions if status == "True"]
    (event,) = [one for one in cluster.events if "has exited with 0" in one.message]
    assert (event.type, event.reason) == ("Warning", "MPIJobRestarting")
    assert "because of the loss of worker-1: pod pi-worker-1 was deleted" in event.message
    for _ in range(3):
        cluster.kubelet_deletes()
        cluster.step()
    cluster.settle()
    cluster.run_all()
    cluster.settle()
    assert cluster.pod("launcher", 0)["metadata"]["uid"] != launcher
    assert cluster.status["lastLoss"]["replica"] == "worker-1"
    assert cluster.status["lastLoss"]["hidden"] == ["launcher-0"]
    cluster.advance(60)
    cluster.exit("launcher", 0, 0)
    if clock_stands:
        at = cluster.status["lastLoss"]["time"]
        (container,) = cluster.pod("launcher", 0)["status"]["containerStatuses"]
        container["state"]["terminated"] |= {"startedAt": at, "finishedAt": at}
    cluster.settle()
    assert cluster.outcome[1] == "Succeeded"
    assert "retries" not in cluster.status, "the exit was no failure"


# --- a worker that ends with 0


def early(make: Any, policy: str = "OnFailure", workers: int = 3) -> FakeCluster:
    """A job whose processes run for a minute."""
    job = make(workers)
    specs = job["spec"]["mpiReplicaSpecs"]
    specs["Worker"]["restartPolicy"] = policy
    specs["Launcher"]["restartPolicy"] = "OnFailure" if policy == "Always" else policy
    cluster = FakeCluster(job, MPI)
    cluster.start()
    cluster.run_all()
    cluster.settle()
    cluster.advance(60)
    return cluster


def again(cluster: FakeCluster) -> None:
    """All that ends, ends, and all replicas run."""
    for _ in range(3):
        cluster.settle()
        cluster.run_all()
        cluster.kubelet_deletes()
    cluster.settle()


@pytest.mark.parametrize(
    ("make", "policy"),
    [(mpijob, "OnFailure"), (mpijob_v1, "OnFailure"), (mpijob_v1, "ExitCode"), (mpijob_v1, "Always")],
)
@pytest.mark.parametrize("seconds", [0, 1, hidden_losses.WINDOW])
@pytest.mark.parametrize("together", [True, False])
def test_a_worker_that_ends_with_0_while_the_launcher_runs_is_lost(
    make: Any, policy: str, seconds: int, *, together: bool
) -> None:
    """An sshd does so after SIGTERM, and mpirun of Open MPI 5 then exits with 0."""
    cluster = early(make, policy)
    before = {name: one["metadata"]["uid"] for name, one in cluster.pods.items()}
    cluster.exit("worker", 1, 0)
    if not together:
        cluster.step()
    cluster.advance(seconds)
    cluster.exit("launcher", 0, 0)
    again(cluster)
    assert cluster.outcome == ("Running", "Running")
    assert "completed" not in cluster.status
    assert (cluster.status["lastLoss"]["replica"], cluster.status["lastLoss"]["hidden"]) == ("worker-1", ["launcher-0"])
    assert "retries" not in cluster.status
    new = {name for name, one in cluster.pods.items() if one["metadata"]["uid"] not in before.values()}
    restarts_in_place = policy == "Always"
    assert [name for name in sorted(new) if "worker" in name] == ([] if restarts_in_place else ["pi-worker-1"])
    assert any("launcher" in name for name in new)
    (event,) = [one for one in cluster.events if "has exited with 0 because of the loss of worker-1" in one.message]
    assert "exited with 0 while the launcher ran" in event.message
    # the same again counts: the work may be done
    cluster.advance(60)
    cluster.exit("worker", 1, 0)
    cluster.exit("launcher", 0, 0)
    cluster.settle()
    assert cluster.outcome[1] == "Succeeded"


def test_its_end_is_recorded_before_anything_is_deleted() -> None:
    """The operator may end between the two, and the status said that the worker had succeeded."""
    cluster = early(mpijob_v1)
    cluster.exit("worker", 1, 0)
    cluster.step()
    assert cluster.status["completed"] == {"worker": "1"}
    cluster.exit("launcher", 0, 0)
    assert cluster.step().requeue_after == REPORT_LAG
    cluster.advance(REPORT_LAG)
    assert cluster.step().deletions == ()
    assert "completed" not in cluster.status
    deleted = {one.name for one in cluster.step(status_gets_lost=True).deletions}
    assert deleted == {"pi-launcher", "pi-worker-1"}
    again(cluster)
    assert cluster.outcome == ("Running", "Running")


@pytest.mark.parametrize("make", [mpijob, mpijob_v1])
def test_it_gets_a_new_pod_where_the_launcher_fails(make: Any) -> None:
    """mpirun of Open MPI 4.1 exits with 255."""
    cluster = early(make)
    cluster.exit("worker", 1, 0)
    cluster.step()
    cluster.exit("launcher", 0, 255)
    uid = cluster.pod("worker", 1)["metadata"]["uid"]
    cluster.step()
    cluster.advance(REPORT_LAG)
    again(cluster)
    assert cluster.outcome == ("Running", "Running")
    assert cluster.pod("worker", 1)["metadata"]["uid"] != uid
    assert cluster.status["lastLoss"]["replica"] == "worker-1"


def ends_with_all(cluster: FakeCluster) -> None:
    for index in range(3):
        cluster.exit("worker", index, 0)
    cluster.exit("launcher", 0, 0)


def ends_one_by_one(cluster: FakeCluster) -> None:
    """Its report comes before those of the last workers."""
    cluster.exit("worker", 0, 0)
    cluster.exit("launcher", 0, 0)
    cluster.step()
    for index in (1, 2):
        cluster.advance(1)
        cluster.exit("worker", index, 0)
        cluster.step()


def ends_after(cluster: FakeCluster) -> None:
    cluster.exit("launcher", 0, 0, seconds=-1)
    cluster.exit("worker", 1, 0)


def ends_long_before(cluster: FakeCluster) -> None:
    cluster.exit("worker", 1, 0)
    cluster.settle()
    cluster.advance(hidden_losses.WINDOW + 1)
    cluster.exit("launcher", 0, 0)


@pytest.mark.parametrize("end", [ends_with_all, ends_one_by_one, ends_after, ends_long_before])
@pytest.mark.parametrize("policy", ["OnFailure", "Never"])
@pytest.mark.parametrize("make", [mpijob, mpijob_v1])
def test_workers_that_end_by_themselves_lose_nothing(make: Any, policy: str, end: Any) -> None:
    cluster = early(make, policy)
    end(cluster)
    cluster.settle()
    assert cluster.outcome[1] == "Succeeded"
    assert "lastLoss" not in cluster.status


def test_under_never_its_end_is_believed() -> None:
    """As in mpi-operator, which starts no worker again that has exited with 0."""
    cluster = early(mpijob_v1, "Never")
    cluster.exit("worker", 1, 0)
    cluster.exit("launcher", 0, 0)
    cluster.step()
    assert cluster.outcome[1] == "Succeeded"


def test_a_worker_that_has_ended_long_before_stays_so_while_the_launcher_runs() -> None:
    cluster = early(mpijob_v1)
    cluster.exit("worker", 1, 0)
    cluster.settle()
    cluster.advance(600)
    cluster.settle()
    assert cluster.status["completed"] == {"worker": "1"}
    cluster.exit("launcher", 0, 255)
    cluster.settle()
    assert cluster.status["completed"] == {"worker": "1"}


def test_the_only_worker_may_have_done_the_work() -> None:
    cluster = early(mpijob_v1, workers=1)
    cluster.exit("worker", 0, 0)
    cluster.exit("launcher", 0, 0)
    cluster.settle()
    assert cluster.outcome[1] == "Succeeded"
