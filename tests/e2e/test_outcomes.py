"""How a job ends, by the exit code of its scheduler and the policies of its flavor, in real pods."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.live_jobs import UNTIL_ENDED, UNTIL_RELEASED, Cluster, v1_job, v1alpha1_job


def test_scheduler_success_ends_the_job_and_cleans_up(here: Cluster) -> None:
    job = here.create(v1alpha1_job("ends-well", scheduler=UNTIL_RELEASED, worker=(2, UNTIL_ENDED)))
    job.wait(lambda s: s.get("replicas") == "4/4", "4/4 replicas")
    job.release("scheduler")
    cleaning = job.wait(lambda s: s.get("phase") == "CleanUp", "phase CleanUp")
    assert (cleaning["state"], cleaning["reason"]) == ("Succeeded", "")
    status = job.wait_end()
    assert (status["phase"], status["state"]) == ("Done", "Succeeded")
    # mx-operator's own sample: what the others did when the chief ended is kept
    assert status["replicaStatuses"][0] == {
        "ReplicasStates": {"Succeeded": 1},
        "mx_replica_type": "SCHEDULER",
        "state": "Succeeded",
    }
    assert status["replicaStatuses"][2]["ReplicasStates"] == {"Running": 2}
    left = [p["metadata"]["labels"]["dljob.operator/replica-type"] for p in job.pods()]
    assert left == ["scheduler"], "cleanPodPolicy Running keeps the finished pod and its log"
    assert here.services(job.uid) == []
    here.wait_event("ends-well", "Normal", "MXJobSucceeded")
    assert [reason for _, reason, _ in here.events("ends-well")].count("MXJobSucceeded") == 1


def test_a_worker_that_ends_after_the_scheduler_keeps_its_log(here: Cluster) -> None:
    """As ps-lite's do, if the kubelet reports the scheduler first; here a second lies between them."""
    up, over = f"/meet/{here.namespace}-up", f"/meet/{here.namespace}-over"
    manifest = v1alpha1_job(
        "ends-together",
        scheduler=f"until [ -e {up} ]; do sleep 0.1; done; touch {over}",
        worker=f"touch {up}; until [ -e {over} ]; do sleep 0.1; done; sleep 1; echo through",
    )
    for entry in manifest["spec"]["replicaSpecs"]:
        pod = entry["template"]["spec"]
        pod["volumes"] = [{"name": "meet", "hostPath": {"path": "/tmp"}}]  # the node's, which anybody may write to
        pod["containers"][0]["volumeMounts"] = [{"name": "meet", "mountPath": "/meet"}]
    job = here.create(manifest)
    status = job.wait_end()
    assert (status["phase"], status["state"]) == ("Done", "Succeeded")
    assert here.log(job.pod("worker")["metadata"]["name"]) == "through\n"
    left = {p["metadata"]["labels"]["dljob.operator/replica-type"] for p in job.pods()}
    assert left == {"scheduler", "worker"}, "the server would have gone on for ever"


@pytest.mark.parametrize(
    ("group", "code"),
    [
        pytest.param("fioravanzo.org", 1, id="fioravanzo: 1-127 are permanent"),
        pytest.param("fioravanzo.org", 127, id="fioravanzo: 127 is the last of them"),
        pytest.param("kubeflow.org", 139, id="kubeflow: 139 is permanent by its list"),
    ],
)
def test_permanent_exit_code_fails_the_job(here: Cluster, group: str, code: int) -> None:
    job = here.create(v1alpha1_job("ends-badly", group, scheduler=f"echo boom; exit {code}"))
    status = job.wait_end()
    assert (status["phase"], status["state"]) == ("Failed", "Failed")
    assert status["failure"]["exitCode"] == code
    assert status["failure"]["container"] == "mxnet"
    assert f"exited with {code}" in status["reason"]
    here.wait_event("ends-badly", "Warning", "MXJobFailed")


@pytest.mark.parametrize(
    ("group", "code"),
    [
        pytest.param("fioravanzo.org", 139, id="fioravanzo: all of 128-255"),
        pytest.param("kubeflow.org", 143, id="kubeflow: a signal"),
        pytest.param("kubeflow.org", 138, id="kubeflow: the user's own code"),
    ],
)
def test_retryable_exit_code_is_tried_again(here: Cluster, group: str, code: int) -> None:
    # an emptyDir outlives the container: a marker in it distinguishes the attempts
    manifest = v1alpha1_job(
        "tries-again", group, scheduler=f"[ -e /state/tried ] && exit 0; touch /state/tried; exit {code}"
    )
    pod = manifest["spec"]["replicaSpecs"][0]["template"]["spec"]
    pod["volumes"] = [{"name": "state", "emptyDir": {}}]
    pod["containers"][0]["volumeMounts"] = [{"name": "state", "mountPath": "/state"}]
    job = here.create(manifest)
    status = job.wait_end()
    assert status["state"] == "Succeeded"


def test_failing_worker_is_replaced_when_the_kubelet_does_not_restart_it(here: Cluster) -> None:
    manifest = v1alpha1_job("worker-fails", worker="exit 3")
    manifest["spec"]["replicaSpecs"][2]["template"]["spec"]["restartPolicy"] = "Never"
    job = here.create(manifest)
    status = job.wait(lambda s: (s.get("retries") or {}).get("worker-0", 0) >= 2, "two retries")
    assert status["state"] == "Running", "a worker's failure is not the job's"
    here.wait_event("worker-fails", "Warning", "MXJobRestarting", "exited with 3")


def test_v1_never_fails_with_any_replica(here: Cluster) -> None:
    job = here.create(v1_job("v1-never", worker=(2, "[ $DMLC_WORKER_ID = 1 ] && exit 9; sleep 60")))
    status = job.wait_end()
    assert status["state"] == "Failed"
    assert status["failure"] == {
        "pod": "v1-never-worker-1",
        "container": "mxnet",
        "exitCode": 9,
        "reason": "Error",
        "message": "container mxnet of pod v1-never-worker-1 exited with 9 (Error)",
    }
    assert [c["type"] for c in status["conditions"]][-1] == "Failed"


def test_v1_exit_code_policy(here: Cluster) -> None:
    job = here.create(v1_job("v1-exit-code", "ExitCode", {"backoffLimit": 2}, worker="exit 130"))
    status = job.wait_end()
    assert status["failure"]["reason"] == "BackoffLimitExceeded"
    assert status["retries"] == {"worker-0": 2}  # no restart follows the third failure
    here.wait_event("v1-exit-code", "Warning", "MXJobRestarting")


def test_v1_status_conditions_and_counts(here: Cluster) -> None:
    job = here.create(v1_job("v1-good", scheduler=UNTIL_RELEASED, worker=(2, "sleep 1")))
    running = job.wait_running()
    assert running["state"] == "Running"
    job.release("scheduler")
    status = job.wait(lambda s: bool(s.get("completionTime")), "its end")
    assert [(c["type"], c["status"]) for c in status["conditions"]] == [
        ("Created", "True"),
        ("Running", "False"),
        ("Succeeded", "True"),
    ]
    assert status["conditions"][-1]["reason"] == "MXJobSucceeded"
    assert status["replicaStatuses"]["Scheduler"]["succeeded"] == 1
    assert {p["metadata"]["name"] for p in job.pods()} == {
        "v1-good-scheduler-0",
        "v1-good-server-0",
        "v1-good-worker-0",
        "v1-good-worker-1",
    }, "cleanPodPolicy None, v1's default, leaves everything"


def test_deadline_fires_without_an_event(here: Cluster) -> None:
    job = here.create(v1_job("too-long", run_policy={"activeDeadlineSeconds": 4, "cleanPodPolicy": "All"}))
    status = job.wait_end(60)
    assert status["failure"]["reason"] == "DeadlineExceeded"
    here.wait_pods(job.uid, lambda pods: not pods, "all pods deleted")


def test_ttl_deletes_the_job_on_time(here: Cluster) -> None:
    job = here.create(v1_job("short-lived", scheduler="exit 0", run_policy={"ttlSecondsAfterFinished": 3}))
    ended = job.wait(lambda s: bool(s.get("completionTime")), "its end")["completionTime"]
    job.wait_deleted()
    assert datetime.now(UTC) >= datetime.fromisoformat(ended) + timedelta(seconds=3)
    here.wait_pods(job.uid, lambda pods: not pods, "the pods gone with the job", 60)


@pytest.mark.parametrize(
    "manifest",
    [
        v1_job("v1", "Always", worker="sleep 1", server="sleep 1"),
        v1alpha1_job("list", worker="sleep 1", server="sleep 1"),
        v1alpha1_job("list", "fioravanzo.org", worker="sleep 1", server="sleep 1"),
    ],
    ids=["v1", "kubeflow.org/v1alpha1", "fioravanzo.org/v1alpha1"],
)
def test_always_starts_what_has_ended_with_0_again(here: Cluster, manifest: dict[str, Any]) -> None:
    for entry in manifest["spec"].get("replicaSpecs", ()):
        entry["template"]["spec"]["restartPolicy"] = "Always"
    job = here.create(manifest)

    def restarted(pods: list[dict[str, Any]]) -> bool:
        again = {
            p["metadata"]["labels"]["dljob.operator/replica-type"]
            for p in pods
            for container in p["status"].get("containerStatuses") or ()
            # the operator has reconciled the first one meanwhile
            if container["restartCount"] >= 2 and container["lastState"].get("terminated", {}).get("exitCode") == 0
        }
        return again == {"worker", "server"}

    here.wait_pods(job.uid, restarted, "two restarts of the worker and of the server")
    status = job.status
    assert status["state"] not in ("Succeeded", "Failed")
    assert "retries" not in status
    assert "completed" not in status


@pytest.mark.parametrize(("code", "state"), [(0, "Succeeded"), (28, "Failed")])
def test_a_worker_that_ends_after_the_scheduler_decides_too(here: Cluster, code: int, state: str) -> None:
    """As one of MXNet whose disk is full when it saves its result: ps-lite's scheduler has exited with 0 by then."""
    job = here.create(v1_job("saves-last", scheduler=UNTIL_RELEASED, worker=f"{UNTIL_RELEASED}; sleep 1; exit {code}"))
    job.wait_running()
    job.release("scheduler")
    saving = job.wait(lambda s: s.get("reason", "").startswith("the Scheduler has exited with 0: waiting"), "the wait")
    assert (saving["state"], "completionTime" in saving) == ("Running", False)
    job.release("worker")
    status = job.wait_end()
    assert status["state"] == state
    assert status.get("failure", {}).get("exitCode", 0) == code
