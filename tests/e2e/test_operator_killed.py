"""An operator that dies in the middle of a job, which no other operator may touch."""

from __future__ import annotations

from pathlib import Path

from devtools.testbed.operator import OperatorProcess
from support.live_jobs import UNTIL_RELEASED, Cluster, v1alpha1_job


def test_job_goes_on_when_the_operator_is_killed(own: Cluster, tmp_path: Path) -> None:
    """The pod ends while no operator runs; the next operator notices. Watches only its own namespace."""
    arguments = ("--namespace", own.namespace)
    with OperatorProcess(own.kubeconfig, tmp_path / "first.log", arguments) as first:
        first.wait_ready()
        job = own.create(v1alpha1_job("operator-killed", scheduler=UNTIL_RELEASED))
        job.wait_running()
        before = {p["metadata"]["uid"] for p in job.pods()}
        first.kill()
    job.release("scheduler")
    own.wait_pods(
        job.uid, lambda pods: any(p["status"].get("phase") == "Succeeded" for p in pods), "the scheduler's end"
    )
    assert job.status["state"] == "Running", "no operator was running"
    with OperatorProcess(own.kubeconfig, tmp_path / "second.log", arguments) as second:
        second.wait_ready()
        status = job.wait_end()
    assert status["state"] == "Succeeded"
    assert {p["metadata"]["uid"] for p in job.pods()} <= before, "no pod was started twice"
