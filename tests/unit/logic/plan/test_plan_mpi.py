"""The life cycle of MPIJobs: a batch Job runs the launcher, and its end is the job's."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.end_order import REPORT_LAG
from support.builders import MPI, MXNET, Resource, mpijob, mpijob_v1, mxjob, stamp
from support.fake_cluster import FakeCluster, is_quiet


def played(job: Resource) -> FakeCluster:
    fake_cluster = FakeCluster(job, MPI)
    fake_cluster.start()
    return fake_cluster


def with_policy(type_: str, policy: str, **spec: Any) -> Resource:
    job = mpijob(**spec)
    job["spec"]["mpiReplicaSpecs"][type_]["restartPolicy"] = policy
    return job


def hosts(fake_cluster: FakeCluster) -> str:
    text: str = fake_cluster.others["ConfigMap"]["pi-config"]["data"]["discover_hosts.sh"]
    return text.replace(".pi.default.svc", "")


def test_what_a_job_consists_of() -> None:
    fake_cluster = FakeCluster(mpijob(), MPI)
    fake_cluster.settle()
    assert set(fake_cluster.services) == {"pi"}
    assert {kind: set(found) for kind, found in fake_cluster.others.items() if found} == {
        "ConfigMap": {"pi-config"},
        "Secret": {"pi-ssh"},
        "Job": {"pi-launcher"},
    }
    assert fake_cluster.replicas() == ["launcher-0", "worker-0", "worker-1"]
    for kind, name in (("ConfigMap", "pi-config"), ("Secret", "pi-ssh"), ("Job", "pi-launcher")):
        (owner,) = fake_cluster.others[kind][name]["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("MPIJob", "pi", True)


def test_the_launchers_job_has_the_limit_of_retries_and_no_times() -> None:
    policy = {"backoffLimit": 3, "activeDeadlineSeconds": 60, "ttlSecondsAfterFinished": 5, "cleanPodPolicy": "All"}
    fake_cluster = FakeCluster(mpijob(runPolicy=policy), MPI)
    fake_cluster.settle()
    spec = dict(fake_cluster.others["Job"]["pi-launcher"]["spec"])
    template = spec.pop("template")
    assert spec == {"backoffLimit": 3, "podReplacementPolicy": "Failed"}
    assert template["spec"]["restartPolicy"] == "OnFailure"
    assert template["spec"]["hostname"] == "pi-launcher"


def test_running_is_the_launcher_and_all_workers() -> None:
    fake_cluster = FakeCluster(mpijob(), MPI)
    fake_cluster.settle()
    fake_cluster.run("launcher", 0)
    fake_cluster.run("worker", 0)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Created"
    assert fake_cluster.status["replicaStatuses"]["Launcher"]["active"] == 1
    fake_cluster.run_all()
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Running"
    assert fake_cluster.status["conditions"][-1]["reason"] == "MPIJobRunning"


def test_a_settled_job_writes_nothing() -> None:
    assert is_quiet(played(mpijob()).planned())


@pytest.mark.parametrize(
    ("policy", "left", "launcher"),
    [
        (None, ["launcher-0", "worker-0", "worker-1"], True),
        ("None", ["launcher-0", "worker-0", "worker-1"], True),
        ("Running", ["launcher-0"], True),
        ("All", [], False),
    ],
)
def test_success_and_cleanup(policy: str | None, left: list[str], launcher: bool) -> None:
    """mpi-operator's All keeps the launcher."""
    fake_cluster = played(mpijob(runPolicy={"cleanPodPolicy": policy} if policy else {}))
    fake_cluster.exit("launcher", 0, 0)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Succeeded"
    assert fake_cluster.status["completionTime"]
    assert fake_cluster.replicas() == left
    assert ("pi-launcher" in fake_cluster.others["Job"]) == launcher
    assert fake_cluster.conditions == [("Created", "True"), ("Running", "False"), ("Succeeded", "True")]
    assert not any(one.get("active") for one in fake_cluster.status["replicaStatuses"].values())


def test_a_sidecar_that_outlives_the_launcher_is_cleaned_up() -> None:
    job = mpijob(runPolicy={"cleanPodPolicy": "Running"})
    containers = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    containers.append({"name": "proxy", "image": "p"})
    fake_cluster = played(job)
    pod = fake_cluster.pod("launcher", 0)
    fake_cluster.set_state(pod, "Running", _terminated(0, ""))
    pod["status"]["containerStatuses"].append({"name": "proxy", "state": {"running": {}}})
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Succeeded"
    assert not fake_cluster.others["Job"]


def test_the_launcher_is_tried_again_by_its_job() -> None:
    fake_cluster = played(with_policy("Launcher", "Never", runPolicy={"backoffLimit": 1}))
    fake_cluster.exit("launcher", 0, 7, message="no route")
    fake_cluster.step()
    assert fake_cluster.status["state"] == "Running"
    second = max(pod for pod in fake_cluster.pods if pod.startswith("pi-launcher"))
    fake_cluster.run_pod(fake_cluster.pods[second])
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Running"
    fake_cluster.set_state(fake_cluster.pods[second], "Failed", _terminated(7, "no route"))
    fake_cluster.settle()
    failure = fake_cluster.status["failure"]
    assert fake_cluster.status["state"] == "Failed"
    assert (failure["reason"], failure["exitCode"], failure["pod"]) == ("BackoffLimitExceeded", 7, second)
    assert "no route" in failure["message"]


def _terminated(code: int, message: str) -> Any:
    return {
        "terminated": {"exitCode": code, "reason": "Error", "finishedAt": "2026-01-02T12:00:00Z", "message": message}
    }


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_a_failed_job_of_the_launcher_is_final(policy: str) -> None:
    """Whatever the restart policy: the Job has used it up."""
    fake_cluster = played(with_policy("Launcher", policy, runPolicy={"backoffLimit": 0, "cleanPodPolicy": "Running"}))
    fake_cluster.set_state(fake_cluster.pod("launcher", 0), "Failed", _terminated(1, ""))
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Failed"
    assert fake_cluster.status["completionTime"]
    assert fake_cluster.replicas() == ["launcher-0"]


def test_an_evicted_launcher() -> None:
    fake_cluster = played(mpijob(runPolicy={"backoffLimit": 0, "cleanPodPolicy": "All"}))
    fake_cluster.evict("launcher", 0)
    fake_cluster.settle()
    assert fake_cluster.status["failure"]["reason"] == "BackoffLimitExceeded/Evicted"
    assert fake_cluster.status["completionTime"]
    assert fake_cluster.replicas() == []


def test_an_evicted_launcher_with_retries_left() -> None:
    fake_cluster = played(mpijob())
    fake_cluster.evict("launcher", 0)
    fake_cluster.step()
    assert len([pod for pod in fake_cluster.pods if pod.startswith("pi-launcher")]) == 2
    fake_cluster.run_all()
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Running"


def test_an_evicted_worker_ends_the_job_with_all_that_follows() -> None:
    """mpi-operator reports Failed without a completion time and cleans nothing up."""
    fake_cluster = played(mpijob(runPolicy={"cleanPodPolicy": "Running"}))
    fake_cluster.evict("worker", 1)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Failed"
    assert fake_cluster.status["failure"]["reason"] == "Evicted"
    assert fake_cluster.status["completionTime"]
    assert fake_cluster.replicas() == ["worker-1"]
    assert not fake_cluster.others["Job"]


def test_a_worker_that_may_restart_is_replaced() -> None:
    fake_cluster = played(with_policy("Worker", "OnFailure"))
    fake_cluster.evict("worker", 1)
    fake_cluster.settle()
    fake_cluster.run_all()
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Running"
    assert fake_cluster.replicas() == ["launcher-0", "worker-0", "worker-1"]


def test_the_time_to_live_ends_the_whole_job() -> None:
    """mpi-operator deletes only the launcher."""
    fake_cluster = played(mpijob(runPolicy={"ttlSecondsAfterFinished": 30}))
    fake_cluster.exit("launcher", 0, 0)
    fake_cluster.settle()
    assert not fake_cluster.planned().delete_job
    fake_cluster.advance(31)
    assert fake_cluster.planned().delete_job


def test_suspend_and_resume() -> None:
    fake_cluster = played(mpijob())
    before = fake_cluster.others["Job"]["pi-launcher"]["metadata"]["uid"]
    fake_cluster.edit(lambda spec: spec.setdefault("runPolicy", {}).update(suspend=True))
    fake_cluster.settle()
    assert fake_cluster.replicas() == []
    assert not fake_cluster.others["Job"]
    assert fake_cluster.status["state"] == "Suspended"
    assert not any(one.get("active") for one in fake_cluster.status["replicaStatuses"].values())
    fake_cluster.edit(lambda spec: spec["runPolicy"].update(suspend=False))
    fake_cluster.start()
    assert fake_cluster.status["state"] == "Running"
    assert fake_cluster.others["Job"]["pi-launcher"]["metadata"]["uid"] != before
    reasons = {one["type"]: one["reason"] for one in fake_cluster.status["conditions"]}
    assert reasons["Suspended"] == "MPIJobResumed"


def test_a_new_launcher_waits_for_the_end_of_the_old_one() -> None:
    """They have one hostname."""
    fake_cluster = played(mpijob())
    fake_cluster.edit(lambda spec: spec.update(slotsPerWorker=2))
    fake_cluster.step()
    fake_cluster.step()
    old = fake_cluster.others["Job"]["pi-launcher"]["metadata"]
    assert old["deletionTimestamp"]
    fake_cluster.settle()
    assert fake_cluster.others["Job"]["pi-launcher"]["metadata"]["uid"] != old["uid"]
    assert fake_cluster.replicas() == ["launcher-0", "worker-0", "worker-1"]


@pytest.mark.parametrize("policy", ["AtStartup", "WaitForWorkersReady"])
def test_when_the_launcher_is_created(policy: str) -> None:
    fake_cluster = FakeCluster(mpijob(launcherCreationPolicy=policy), MPI)
    fake_cluster.settle()
    waits = policy != "AtStartup"
    assert ("pi-launcher" in fake_cluster.others["Job"]) != waits
    fake_cluster.run("worker", 0)
    fake_cluster.settle()
    assert ("pi-launcher" in fake_cluster.others["Job"]) != waits
    fake_cluster.run("worker", 1)
    fake_cluster.settle()
    assert "pi-launcher" in fake_cluster.others["Job"]


def test_the_hosts_follow_the_workers() -> None:
    fake_cluster = FakeCluster(mpijob(), MPI)
    fake_cluster.settle()
    assert hosts(fake_cluster) == "#!/bin/sh\n"
    fake_cluster.run("worker", 1)
    fake_cluster.settle()
    assert hosts(fake_cluster) == "#!/bin/sh\necho pi-worker-1\n"
    fake_cluster.run_all()
    fake_cluster.settle()
    assert hosts(fake_cluster) == "#!/bin/sh\necho pi-worker-0\necho pi-worker-1\n"


def test_more_workers_restart_nothing() -> None:
    fake_cluster = played(mpijob())
    before = {name: pod["metadata"]["uid"] for name, pod in fake_cluster.pods.items()}
    fake_cluster.edit(lambda spec: spec["mpiReplicaSpecs"]["Worker"].update(replicas=3))
    fake_cluster.start()
    assert {name: fake_cluster.pods[name]["metadata"]["uid"] for name in before} == before
    assert hosts(fake_cluster).count("echo") == 3
    assert fake_cluster.others["ConfigMap"]["pi-config"]["data"]["hostfile"].count("slots") == 3
    fake_cluster.edit(lambda spec: spec["mpiReplicaSpecs"]["Worker"].update(replicas=1))
    fake_cluster.settle()
    assert fake_cluster.replicas() == ["launcher-0", "worker-0"]
    assert fake_cluster.status["state"] == "Running"


def image_of(type_: str) -> Any:
    """An edit of the image of a type's container."""

    def edit(spec: Any) -> None:
        spec["mpiReplicaSpecs"][type_]["template"]["spec"]["containers"][0]["image"] = "mpi:2"

    return edit


@pytest.mark.parametrize(
    "job",
    [
        mpijob(),
        mpijob(launcherCreationPolicy="WaitForWorkersReady"),
        mpijob_v1(),
        mpijob(runPolicy={"restartScope": "Job"}),
    ],
    ids=["v2beta1", "WaitForWorkersReady", "v1", "restartScope"],
)
def test_another_template_of_the_workers_begins_the_job_anew(job: Resource) -> None:
    """Of a launcher that stays, mpirun would fail with its workers, and with it the job."""
    fake_cluster = played(job)
    fake_cluster.start()
    before = {pod["metadata"]["uid"] for pod in fake_cluster.pods.values()}
    fake_cluster.edit(image_of("Worker"))
    fake_cluster.settle()
    fake_cluster.start()
    fake_cluster.start()
    assert fake_cluster.replicas() == ["launcher-0", "worker-0", "worker-1"]
    assert before.isdisjoint(pod["metadata"]["uid"] for pod in fake_cluster.pods.values())
    assert fake_cluster.status["state"] == "Running"
    assert is_quiet(fake_cluster.planned())


def deletions(fake_cluster: FakeCluster) -> list[str]:
    return [deletion.name for deletion in fake_cluster.planned().deletions]


def test_the_launcher_goes_before_the_old_workers_and_comes_after_them() -> None:
    """Each deletion may fail, and a process may be killed after it: no launcher must reach a worker that goes."""
    fake_cluster = played(mpijob())
    fake_cluster.edit(image_of("Worker"))
    assert deletions(fake_cluster) == ["pi-launcher"]
    fake_cluster.step()
    while not fake_cluster.others["Job"]["pi-launcher"]["metadata"].get("deletionTimestamp"):
        fake_cluster.step()
    assert deletions(fake_cluster) == ["pi-worker-0", "pi-worker-1"]
    del fake_cluster.others["Job"]["pi-launcher"]
    fake_cluster.pods = {name: pod for name, pod in fake_cluster.pods.items() if "launcher" not in name}
    assert "pi-launcher" not in [pod["metadata"]["name"] for pod in fake_cluster.planned().pods]
    del fake_cluster.pods["pi-worker-0"]
    assert [pod["metadata"]["name"] for pod in fake_cluster.planned().pods] == ["pi-worker-0"]
    assert deletions(fake_cluster) == ["pi-worker-1"]


def test_surplus_workers_wait_for_the_end_of_the_launcher_too() -> None:
    fake_cluster = played(mpijob())
    fake_cluster.edit(image_of("Worker"))
    fake_cluster.edit(lambda spec: spec["mpiReplicaSpecs"]["Worker"].update(replicas=1))
    assert deletions(fake_cluster) == ["pi-launcher"]


def test_a_launcher_is_not_replaced_for_an_old_worker_that_still_terminates() -> None:
    """It was surplus when the launcher began, which never used it. A larger number needs its name."""
    fake_cluster = played(mpijob())
    fake_cluster.edit(lambda spec: spec["mpiReplicaSpecs"]["Worker"].update(replicas=1))
    fake_cluster.step()
    while not fake_cluster.pods["pi-worker-1"]["metadata"].get("deletionTimestamp"):
        fake_cluster.step()
    fake_cluster.pods["pi-worker-1"]["metadata"]["annotations"]["dljob.operator/spec-hash"] = "of another template"
    fake_cluster.edit(lambda spec: spec["mpiReplicaSpecs"]["Worker"].update(replicas=2))
    assert deletions(fake_cluster) == []


def test_where_all_restart_together_the_launcher_goes_first_too() -> None:
    fake_cluster = played(mpijob(runPolicy={"restartScope": "Job"}))
    fake_cluster.edit(image_of("Worker"))
    assert deletions(fake_cluster) == ["pi-launcher"]
    fake_cluster.settle()
    fake_cluster.start()
    assert fake_cluster.status.get("attempt", 0) == 0, "an edit is no restart"


@pytest.mark.parametrize("policy", [{}, {"restartScope": "Job"}])
def test_nothing_is_created_beside_a_launcher_whose_batch_job_is_gone(policy: dict[str, str]) -> None:
    """The garbage collector may miss a pod as the API server restarts. The new workers would have the old names."""
    fake_cluster = played(mpijob(runPolicy=policy))
    del fake_cluster.others["Job"]["pi-launcher"]
    del fake_cluster.pods["pi-worker-1"]
    for _ in range(5):
        fake_cluster.step()
        if fake_cluster.pods.get("pi-worker-0", {}).get("metadata", {}).get("deletionTimestamp"):
            del fake_cluster.pods["pi-worker-0"]
        fake_cluster.advance(10)
    assert "pi-launcher" not in fake_cluster.others["Job"]
    assert "pi-worker-1" not in fake_cluster.pods
    assert fake_cluster.status["reason"] == "waiting until Pod/pi-launcher-0, which terminates, is gone"
    del fake_cluster.pods["pi-launcher-0"]
    fake_cluster.settle()
    assert "pi-launcher" in fake_cluster.others["Job"]
    assert fake_cluster.replicas() == ["launcher-0", "worker-0", "worker-1"]


def test_a_job_without_batch_jobs_waits_for_no_pod_of_one() -> None:
    fake_cluster = FakeCluster(mxjob("digits").v1().workers(2).resource(), MXNET)
    expected = [one["metadata"]["name"] for one in fake_cluster.planned().pods]
    job_uid = fake_cluster.resource["metadata"]["uid"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "uid": "gone", "controller": True}
    labels = {"dljob.operator/job-uid": job_uid}
    fake_cluster.pods["p"] = {"metadata": {"name": "p", "labels": labels, "ownerReferences": [owner]}}
    assert expected
    assert [one["metadata"]["name"] for one in fake_cluster.planned().pods] == expected


def test_another_template_of_the_launcher_keeps_the_workers() -> None:
    fake_cluster = played(mpijob())
    fake_cluster.edit(image_of("Launcher"))
    assert [deletion.name for deletion in fake_cluster.planned().deletions] == ["pi-launcher"]


def test_the_deadline() -> None:
    fake_cluster = played(mpijob(runPolicy={"activeDeadlineSeconds": 60, "cleanPodPolicy": "Running"}))
    fake_cluster.advance(61)
    fake_cluster.settle()
    assert fake_cluster.status["failure"]["reason"] == "DeadlineExceeded"
    assert fake_cluster.replicas() == []


@pytest.mark.parametrize("ends", ["deadline", "worker"])
def test_a_launcher_does_not_outlive_its_failed_job(ends: str) -> None:
    """Without a cleanPodPolicy all pods stay, but its batch Job would start the launcher again and again."""
    fake_cluster = played(mpijob(runPolicy={"activeDeadlineSeconds": 60}))
    if ends == "deadline":
        fake_cluster.advance(61)
    else:
        fake_cluster.exit("worker", 1, 3)
        fake_cluster.advance(REPORT_LAG)
    fake_cluster.step()
    assert (fake_cluster.status["state"], fake_cluster.status["phase"]) == ("Failed", "CleanUp")
    fake_cluster.settle()
    assert not fake_cluster.others["Job"]
    assert fake_cluster.replicas() == ["worker-0", "worker-1"]
    assert fake_cluster.status["phase"] == "Failed"


def test_a_launcher_that_has_failed_stays_for_its_log() -> None:
    fake_cluster = played(with_policy("Launcher", "Never", runPolicy={"backoffLimit": 0}))
    fake_cluster.set_state(fake_cluster.pod("launcher", 0), "Failed", _terminated(1, ""))
    fake_cluster.settle()
    assert (fake_cluster.status["state"], fake_cluster.status["phase"]) == ("Failed", "Failed")
    assert fake_cluster.replicas() == ["launcher-0", "worker-0", "worker-1"]


def test_mpi_operators_name_for_itself() -> None:
    fake_cluster = FakeCluster(mpijob(runPolicy={"managedBy": "kubeflow.org/mpi-operator"}), MPI)
    fake_cluster.settle()
    assert fake_cluster.replicas()
    foreign = FakeCluster(mpijob(runPolicy={"managedBy": "kueue.x-k8s.io/multikueue"}), MPI)
    foreign.settle()
    assert not foreign.replicas()


# --- a launcher whose pod terminates, and a job that ends before its launcher


def terminates(fake_cluster: FakeCluster, seconds: float) -> None:
    """Kubernetes deletes the launcher's pod, not its Job; the grace period ends in so many seconds."""
    pod = fake_cluster.pod("launcher", 0)
    pod["spec"]["nodeName"] = "n1"
    pod["metadata"].update(deletionTimestamp=stamp(seconds), deletionGracePeriodSeconds=seconds)


@pytest.mark.parametrize("is_job_gone", [False, True])
def test_the_pod_of_a_launcher_on_a_lost_node_is_reported_and_deleted_by_force(is_job_gone: bool) -> None:
    fake_cluster = played(mpijob(runPolicy={"forceDeleteAfterSeconds": 60}))
    terminates(fake_cluster, 30)
    if is_job_gone:
        del fake_cluster.others["Job"]["pi-launcher"]
    fake_cluster.advance(80)
    assert "pod pi-launcher-0 should have terminated" in str(fake_cluster.step().status)
    fake_cluster.advance(20)
    (deletion,) = fake_cluster.planned().deletions
    assert (deletion.kind, deletion.name, deletion.lost_node) == ("Pod", "pi-launcher-0", "n1")


def test_the_deletion_of_the_launchers_job_is_not_the_end_of_its_pods_grace_period() -> None:
    fake_cluster = played(mpijob(runPolicy={"forceDeleteAfterSeconds": 0}))
    fake_cluster.others["Job"]["pi-launcher"]["metadata"].update(
        deletionTimestamp=fake_cluster.time, finalizers=["foregroundDeletion"]
    )
    terminates(fake_cluster, 600)
    fake_cluster.advance(100)
    plan = fake_cluster.planned()
    assert (plan.deletions, plan.events, plan.requeue_after) == ((), (), 500)


def test_a_launcher_that_waits_is_deleted_with_the_job_that_it_fails() -> None:
    fake_cluster = FakeCluster(mpijob(runPolicy={"pendingTimeoutSeconds": 60, "cleanPodPolicy": "Running"}), MPI)
    fake_cluster.settle()
    for index in range(2):
        fake_cluster.run("worker", index)
    fake_cluster.settle()
    fake_cluster.advance(61)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Failed"
    assert str(fake_cluster.status["reason"]).startswith("PendingTimeoutExceeded: pod pi-launcher-0 is pending")
    assert (fake_cluster.replicas(), fake_cluster.others["Job"]) == ([], {})


def test_a_launcher_that_runs_again_is_deleted_with_the_job_that_its_workers_fail() -> None:
    job = with_policy("Worker", "OnFailure", runPolicy={"backoffLimit": 2, "cleanPodPolicy": "Running"})
    fake_cluster = played(job)
    for _ in range(3):
        fake_cluster.exit("worker", 0, 1)
        fake_cluster.advance(20)
    fake_cluster.exit("launcher", 0, 1)
    fake_cluster.settle()
    assert (fake_cluster.status["state"], fake_cluster.status["failure"]["pod"]) == ("Failed", "pi-worker-0")
    assert not fake_cluster.others["Job"]


def test_more_workers_restart_no_job_that_restarts_as_a_whole() -> None:
    fake_cluster = played(with_policy("Worker", "OnFailure", runPolicy={"restartScope": "Job"}))
    launcher = fake_cluster.others["Job"]["pi-launcher"]["metadata"]["uid"]
    fake_cluster.edit(lambda spec: spec["mpiReplicaSpecs"]["Worker"].update(replicas=3))
    fake_cluster.settle()
    fake_cluster.run_all()
    fake_cluster.settle()
    assert fake_cluster.replicas() == ["launcher-0", "worker-0", "worker-1", "worker-2"]
    assert fake_cluster.others["Job"]["pi-launcher"]["metadata"]["uid"] == launcher
    assert "attempt" not in fake_cluster.status
    # one before others is not new: it was deleted
    fake_cluster.user_deletes("pi-worker-1")
    fake_cluster.kubelet_deletes()
    fake_cluster.settle()
    assert fake_cluster.status["attempt"] == 1


def test_a_worker_that_is_lost_as_its_launcher_ends_with_0_fails_the_job() -> None:
    """mpirun of Open MPI 5 exits with 0 after it has lost a worker."""
    fake_cluster = played(with_policy("Launcher", "Never"))
    fake_cluster.exit("worker", 1, 137)
    fake_cluster.exit("launcher", 0, 0)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Failed"
    assert fake_cluster.status["failure"]["pod"] == "pi-worker-1"


@pytest.mark.parametrize("job", [mpijob, mpijob_v1], ids=["v2beta1", "v1"])
@pytest.mark.parametrize("code", [0, 1])
@pytest.mark.parametrize(("policy", "kept"), [("None", True), ("Running", True), ("All", False)])
def test_what_a_finished_job_keeps_beside_its_pods(job: Any, code: int, policy: str, kept: bool) -> None:
    """mpi-operator and training-operator keep them until the job is deleted, and delete the workers."""
    made = job(runPolicy={"cleanPodPolicy": policy, "backoffLimit": 0})
    made["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "Never"
    fake_cluster = played(made)
    fake_cluster.start()
    fake_cluster.exit("launcher", 0, code)
    for _ in range(4):  # a launcher's rights are revoked by each plan while a pod terminates
        fake_cluster.step()
        fake_cluster.kubelet_deletes()
        fake_cluster.advance(5)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == ("Failed" if code else "Succeeded")
    assert ("pi" in fake_cluster.services) == kept
    assert ("pi-config" in fake_cluster.others["ConfigMap"]) == kept
    assert [one.split("-")[0] for one in fake_cluster.replicas()] == {
        "None": ["launcher", "worker", "worker"],
        "Running": ["launcher"],
        "All": [],
    }[policy]
    assert is_quiet(fake_cluster.planned())


def test_a_job_of_which_a_part_is_refused_keeps_nothing() -> None:
    """It never ran, so there is nothing to look at."""
    fake_cluster = FakeCluster(mpijob(runPolicy={"cleanPodPolicy": "Running"}), MPI)
    fake_cluster.settle()
    failure = {"reason": "RefusedByKubernetes", "message": "Pod/pi-worker-1: invalid"}
    status = {**fake_cluster.status, "state": "Failed", "phase": "CleanUp", "failure": failure}
    fake_cluster.resource["status"] = status
    fake_cluster.settle()
    assert (fake_cluster.replicas(), dict(fake_cluster.services), fake_cluster.others["ConfigMap"]) == ([], {}, {})
