"""Real MXNet: the manifests of the early operators unchanged, and our own examples."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from support.live_jobs import Cluster, Job, Resource
from support.upstream_manifests import preferred

ROOT = Path(__file__).resolve().parents[2]
ACCURACY = re.compile(r"test_accuracy=([0-9.]+)")

pytestmark = pytest.mark.training


def train(here: Cluster, manifest: Resource) -> tuple[Job, Resource, float]:
    """The job, its last status, and the best accuracy that a worker logged."""
    job = here.create(manifest)
    status = job.wait_end()
    workers = [p for p in job.pods() if p["metadata"]["labels"]["dljob.operator/replica-type"] == "worker"]
    found = [float(text) for pod in workers for text in ACCURACY.findall(here.log(pod["metadata"]["name"]))]
    assert found, f"no accuracy in the logs of {[pod['metadata']['name'] for pod in workers]}"
    return job, status, max(found)


@pytest.mark.parametrize(
    ("name", "port"),
    [
        pytest.param("mxjob-linear-dist.yaml", "9000", id="fioravanzo.org/v1alpha1"),
        pytest.param("mx_job_dist.yaml", "9000", id="kubeflow.org/v1alpha1"),
        pytest.param("dl-operator-mxjob.yaml", "9000", id="mpba.fbk.eu/v1, a bare list"),
    ],
)
def test_upstream_manifest_trains(here: Cluster, name: str, port: str) -> None:
    job, status, accuracy = train(here, preferred(name))
    assert (status["phase"], status["state"], status["reason"]) == ("Done", "Succeeded", "")
    assert {r["mx_replica_type"] for r in status["replicaStatuses"]} == {"SCHEDULER", "SERVER", "WORKER"}
    assert status["runtimeId"]
    scheduler = job.pod("scheduler")
    env = {e["name"]: e.get("value") for e in scheduler["spec"]["containers"][0]["env"]}
    assert env["DMLC_PS_ROOT_PORT"] == port
    assert env["DMLC_ROLE"] == "scheduler"
    assert re.fullmatch(rf"scheduler-{status['runtimeId']}-0-[a-z0-9]{{5}}", scheduler["metadata"]["name"])
    assert accuracy >= 0.9


@pytest.mark.serial  # a node with GPUs of today's name would have this one renamed
def test_gpu_manifest_yields_the_right_objects(here: Cluster) -> None:
    manifest = preferred("mxjob-cifar-gpu.yaml")
    spec = manifest["spec"]["replicaSpecs"][0]["template"]["spec"]
    (mount,), (share,) = spec["containers"][0]["volumeMounts"], spec["volumes"]
    job = here.create(manifest)
    pods = here.wait_pods(job.uid, lambda pods: len(pods) == 3, "three pods")
    for pod in pods:
        type_ = pod["metadata"]["labels"]["dljob.operator/replica-type"]
        container = pod["spec"]["containers"][0]
        limits = (container.get("resources") or {}).get("limits") or {}
        assert limits == ({"alpha.kubernetes.io/nvidia-gpu": "1"} if type_ == "worker" else {})
        assert mount in container["volumeMounts"]
        volume = next(v for v in pod["spec"]["volumes"] if v["name"] == share["name"])
        assert {**volume["azureFile"], "readOnly": False} == share["azureFile"]


def test_example_trains(here: Cluster) -> None:
    """The one of v1 is what `make demo` trains."""
    example = yaml.safe_load((ROOT / "examples" / "mxnet-digits-v1alpha1.yaml").read_text(encoding="utf-8"))
    _, status, accuracy = train(here, example)
    assert status["state"] == "Succeeded", status["reason"]
    assert accuracy >= 0.95
