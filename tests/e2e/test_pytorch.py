"""Real PyTorch: a master with workers, started by python and by torchrun, and workers that come and go."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client
from support.builders import pytorchjob
from support.live_jobs import SHELL_IMAGE, Cluster, Job, kubectl

ROOT = Path(__file__).resolve().parents[2]
ACCURACY = re.compile(r"final: test_accuracy=([0-9.]+) processes=(\d+) epochs=\d+$", re.MULTILINE)
GOES_ON = re.compile(r"going on with epoch (\d+)")

pytestmark = pytest.mark.training


def example(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "examples" / name).read_text(encoding="utf-8")))


def log(here: Cluster, job: Job, type_: str, index: int) -> str:
    return here.log(job.pod(type_, index)["metadata"]["name"], "pytorch")


def final(text: str) -> tuple[float, int]:
    """Accuracy and number of processes, as rank 0's log says."""
    found = ACCURACY.search(text)
    assert found, text
    return float(found[1]), int(found[2])


def test_example_trains(here: Cluster) -> None:
    job = here.create(example("pytorch-digits.yaml"))
    status = job.wait_end()
    assert (status["state"], status["replicaStatuses"]["Master"]["succeeded"]) == ("Succeeded", 1), status
    assert [c["reason"] for c in status["conditions"]] == [
        "PyTorchJobCreated",
        "PyTorchJobRunning",
        "PyTorchJobSucceeded",
    ]
    accuracy, processes = final(log(here, job, "master", 0))
    assert processes == 3
    assert accuracy >= 0.95


@pytest.mark.long
def test_torchrun_finds_its_place(here: Cluster) -> None:
    """The same with two processes in each pod, which torchrun starts: all it knows it has from its variables."""
    manifest = example("pytorch-digits.yaml")
    manifest["spec"]["nprocPerNode"] = "2"
    for replica in manifest["spec"]["pytorchReplicaSpecs"].values():
        replica["replicas"] = 1
        container = replica["template"]["spec"]["containers"][0]
        container["command"] = ["torchrun", "/opt/dljob/pytorch/train_digits.py"]
    job = here.create(manifest)
    status = job.wait_end()
    assert status["state"] == "Succeeded", status
    accuracy, processes = final(log(here, job, "master", 0))
    assert processes == 4
    assert accuracy >= 0.95
    assert "rank 3: " in log(here, job, "worker", 0)


@pytest.mark.long
def test_a_worker_comes_in_the_middle(here: Cluster) -> None:
    manifest = example("pytorch-elastic.yaml")
    (container,) = manifest["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    # the directory is the node's: a checkpoint of an earlier test that was broken off must not be found
    container["args"][-1] = f"--checkpoint=/shared/{here.namespace}.pt"
    # how soon torchrun finds out that a worker waits to be let in; in the releases after this one it is 0.1 s
    container["env"] = [{"name": "PET_MONITOR_INTERVAL", "value": "1"}]
    job = here.create(manifest)
    here.wait_pods(
        job.uid, lambda pods: [p["status"].get("phase") for p in pods] == ["Running", "Running"], "both workers run"
    )
    here.wait_log(f"{job.name}-worker-0", "epoch 5/", "pytorch")
    first = {index: job.pod("worker", index)["metadata"]["uid"] for index in (0, 1)}
    where = ("kubeflow.org", "v1", here.namespace, "pytorchjobs", job.name)
    scale = here.custom.get_namespaced_custom_object_scale(*where)
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (2, 2)
    chosen = here.core.list_namespaced_pod(here.namespace, label_selector=scale["status"]["selector"])
    assert {pod.metadata.uid for pod in chosen.items} == set(first.values()), "what an autoscaler would look at"
    kubectl(here, "scale", "pytorchjob", job.name, "--replicas=3")
    status = job.wait_end()
    assert status["state"] == "Succeeded", status
    logs = {index: log(here, job, "worker", index) for index in (0, 1, 2)}
    # the third took part, and neither of the others was started anew or began from the first epoch
    assert "all 3 processes are there" in logs[2], logs
    assert {index: job.pod("worker", index)["metadata"]["uid"] for index in (0, 1)} == first
    assert min(int(GOES_ON.findall(text)[-1]) for text in logs.values()) > 5, logs
    (whole,) = [text for text in logs.values() if ACCURACY.search(text)]
    accuracy, processes = final(whole)
    assert processes == 3
    assert accuracy >= 0.95


def test_an_autoscaler_changes_the_number_of_workers(here: Cluster) -> None:
    """By Kubernetes' own controller: without measured values too it enforces the bounds."""
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
    }
    manifest = pytorchjob(worker=1, elasticPolicy={"minReplicas": 2, "maxReplicas": 3, "metrics": [metric]})
    manifest["metadata"] = {"name": "scaled"}
    (container,) = manifest["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    container.update(image=SHELL_IMAGE, command=["sleep", "600"])
    job = here.create(manifest)
    here.wait_pods(job.uid, lambda pods: len(pods) == 2, "the autoscaler has added a worker")
    autoscaling = client.AutoscalingV2Api(here.core.api_client)
    (found,) = autoscaling.list_namespaced_horizontal_pod_autoscaler(here.namespace).items
    assert found.metadata.name == "scaled"
    kubectl(here, "patch", "pytorchjob/scaled", "--type=merge", '-p={"spec":{"runPolicy":{"suspend":true}}}')
    here.wait_pods(job.uid, lambda pods: not pods, "a suspended job has no pods")
    assert autoscaling.list_namespaced_horizontal_pod_autoscaler(here.namespace).items == []
