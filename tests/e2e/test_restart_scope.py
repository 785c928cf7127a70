"""restartScope Job, with the framework that needs it: a real training that loses a parameter server and still ends."""

from __future__ import annotations

from pathlib import Path

import yaml
from kubernetes import watch
from support.live_jobs import Cluster, v1_job

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "mxnet-restart-job.yaml"


def follow_until(here: Cluster, pod: str, text: str) -> None:
    """Read the log of ``pod`` as it is written, until a line has ``text``."""
    lines = []
    for line in watch.Watch().stream(here.core.read_namespaced_pod_log, pod, here.namespace, container="mxnet"):
        lines.append(line)
        if text in line:
            return
    raise AssertionError(f"the log of {pod} ended without {text!r}:\n" + "\n".join(lines))


def test_a_training_outlives_a_lost_server(here: Cluster) -> None:
    job = here.create(yaml.safe_load(EXAMPLE.read_text()))
    job.wait_running()
    before = {p["metadata"]["uid"] for p in job.pods()}
    follow_until(here, "mxnet-restart-job-worker-0", "epoch 1/")
    here.core.delete_namespaced_pod("mxnet-restart-job-server-0", here.namespace, grace_period_seconds=0)
    status = job.wait_end()
    assert status["state"] == "Succeeded"
    assert (status["attempt"], status.get("retries")) == (1, None)  # no replica failed
    pods = job.pods()
    assert len(pods) == 4
    assert not before & {p["metadata"]["uid"] for p in pods}
    assert "test_accuracy=0.9" in here.log("mxnet-restart-job-worker-0"), "whatever its kv.rank is"
    here.wait_event(job.name, "Warning", "MXJobRestarting")
    assert [r for _, r, _ in here.events(job.name)].count("MXJobRestarting") == 1


def test_a_crash_restarts_all_replicas(here: Cluster) -> None:
    """The failed replica's message is reported, and at the limit it is the job's failure."""
    run_policy = {"restartScope": "Job", "backoffLimit": 1}
    script = "echo no such data >&2; sleep 1; exit 5"
    job = here.create(v1_job("crashes", "OnFailure", run_policy, worker=(2, script)))
    status = job.wait_end()
    assert status["state"] == "Failed"
    assert status["retries"] == {"job": 1}  # no restart follows the second failure
    assert status["failure"]["reason"] == "BackoffLimitExceeded"
    assert status["failure"]["exitCode"] == 5
