"""Programs that report their progress unchanged: the Trainer of transformers, and the SDK of Kubeflow in a loop."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from devtools.testbed.operator import ProbedOperator
from support.live_jobs import Cluster, Job, until
from support.reporting_program import Start, reached_by_pods

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = "pytorch-progress.yaml"
FINAL = re.compile(r"final: test_accuracy=0\.9[5-9]\d* ")
URL = "KUBEFLOW_TRAINER_SERVER_URL"

pytestmark = [pytest.mark.training, pytest.mark.long]


@pytest.fixture
def start(own: Cluster, tmp_path: Path) -> Start:
    return reached_by_pods(own, tmp_path)


def sdk_job(epochs: int) -> dict[str, Any]:
    """A job of one process, which reports after every epoch of 0.4 s."""
    manifest = yaml.safe_load((ROOT / "examples" / EXAMPLE).read_text(encoding="utf-8"))
    del manifest["spec"]["runPolicy"]  # rank 0 by default
    del manifest["spec"]["pytorchReplicaSpecs"]["Worker"]
    manifest["metadata"]["name"] = "loop"
    (container,) = manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"]
    container["command"] = ["python", "/opt/dljob/pytorch/report_progress.py"]
    container["args"] = [f"--num-epochs={epochs}"]
    return dict(manifest)


def first_report(job: Job) -> dict[str, Any]:
    status = job.wait(lambda status: "trainerStatus" in status, "its first report")
    return dict(status["trainerStatus"])


def metrics(report: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in report.get("metrics", ())}


def wait_percent(operator: ProbedOperator, job: Job, least: int) -> None:
    """Until the operator's metrics have so much of the job, and not yet all."""
    until(lambda: least <= operator.gauge(rf'dljob_job_progress_percent\{{.*job_name="{job.name}"') < 100)


def master_log(here: Cluster, job: Job) -> str:
    return here.log(job.pod("master")["metadata"]["name"], "pytorch")


def test_the_trainer_of_transformers_reports_by_itself(own: Cluster, start: Start) -> None:
    with start("operator") as operator:
        job = own.create(yaml.safe_load((ROOT / "examples" / EXAMPLE).read_text(encoding="utf-8")))
        first = first_report(job)
        wait_percent(operator, job, first["progressPercentage"] + 1)
        status = job.wait_end()
    assert status["state"] == "Succeeded", status.get("reason")
    assert first["progressPercentage"] < 100
    last = status["trainerStatus"]
    assert (last["progressPercentage"], last["estimatedRemainingSeconds"]) == (100, 0)
    assert last["lastUpdatedTime"] > first["lastUpdatedTime"]
    assert 0 < float(metrics(last)["loss"]) < 1, "ten digits to choose from: it began at 2.3"
    assert "rankStatus" not in status, "only rank 0 reports"
    named = {
        pod["metadata"]["name"]: any(one["name"] == URL for one in pod["spec"]["containers"][0]["env"])
        for pod in job.pods()
    }
    assert named == {f"{job.name}-master-0": True, f"{job.name}-worker-0": False}
    log = master_log(own, job)
    assert FINAL.search(log), log
    assert "processes=2" in log, log


def test_a_loop_reports_by_the_sdk(own: Cluster, start: Start) -> None:
    with start("operator") as operator:
        job = own.create(sdk_job(epochs=30))
        first = first_report(job)
        wait_percent(operator, job, first["progressPercentage"] + 1)
        status = job.wait_end()
    assert status["state"] == "Succeeded", status.get("reason")
    last = status["trainerStatus"]
    assert (last["progressPercentage"], metrics(last)["epoch"]) == (100, "30")
    assert float(metrics(last)["loss"]) < float(metrics(first)["loss"])
    log = master_log(own, job)
    reports = re.search(r"reports=(\d+)", log)
    assert reports and int(reports[1]) >= 3, log


def test_training_goes_on_while_nothing_takes_its_reports(own: Cluster, start: Start) -> None:
    """The key of an operator outside the cluster ends with it, so that the pods do not trust the next one."""
    with start("first") as operator:
        job = own.create(sdk_job(epochs=60))
        first_report(job)
        before = job.pod("master")["metadata"]["uid"]
        operator.kill()
        kept = job.status["trainerStatus"]
    with start("second"):
        status = job.wait_end()
    assert status["state"] == "Succeeded", status.get("reason")
    assert job.pod("master")["metadata"]["uid"] == before, "another endpoint replaces no pod"
    assert status["trainerStatus"] == kept
    log = master_log(own, job)
    assert FINAL.search(log), log
    assert "Failed to send status update" in log, log
