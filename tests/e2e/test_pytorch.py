"""Real PyTorch: a master with workers, started by python and by torchrun, and workers that come and go."""

from __future__ import annotations

import base64
import json
import pickletools
import re
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client
from support.builders import pytorchjob
from support.live_jobs import SHELL_IMAGE, Cluster, Job, kubectl, start_server

ROOT = Path(__file__).resolve().parents[2]
ACCURACY = re.compile(r"final: test_accuracy=([0-9.]+) processes=(\d+) epochs=\d+$", re.MULTILINE)
GOES_ON = re.compile(r"going on with epoch (\d+)")

pytestmark = pytest.mark.training


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((ROOT / "examples" / name).read_text(encoding="utf-8")))


def example(name: str) -> dict[str, Any]:
    return documents(name)[0]


@pytest.fixture
def etcd(here: Cluster) -> str:
    """A real etcd in the test's namespace, ready, as the example brings it along; its Service's name."""
    _, deployment, service = documents("pytorch-etcd.yaml")
    return start_server(here, deployment, service)


def etcd_value(here: Cluster, service: str, key: str) -> str | None:
    """The value of a key of etcd, as a client in the cluster reads it.

    None if etcd has no such key, or is not ready: on a busy machine it may miss the second of its probe.
    """
    path = f"/api/v1/namespaces/{here.namespace}/services/{service}:2379/proxy/v2/keys/{key}"
    try:
        return str(json.loads(kubectl(here, "get", "--raw", path))["node"]["value"])
    except AssertionError as error:
        if not any(reason in str(error) for reason in ("(NotFound)", "(ServiceUnavailable)")):
            raise
        return None


def wait_rendezvous(here: Cluster, service: str, key: str, hosts: set[str], timeout: float = 120) -> None:
    """Wait until these hosts take part in torchrun's rendezvous, a pickled object in which their names are texts.

    Called before the test follows a log: a worker whose connection to etcd fails ends, and its next container joins. And not
    after some epochs: torchrun removes a host from the object whose heartbeat is 15 s late.
    """
    deadline = time.monotonic() + timeout
    texts: list[str] = []
    while not hosts <= {text.partition(".")[0] for text in texts}:
        assert time.monotonic() < deadline, f"{hosts} are not in the rendezvous after {timeout:.0f} s: {texts}"
        time.sleep(0.2)
        state = etcd_value(here, service, f"torch/elastic/rendezvous/{key}")
        operations = pickletools.genops(base64.b64decode(state)) if state else ()
        texts = [value for _, value, _ in operations if isinstance(value, str)]


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
    assert [(c["type"], c["status"], c["reason"]) for c in status["conditions"]] == [
        ("Created", "True", "PyTorchJobCreated"),
        ("Running", "False", "PyTorchJobSucceeded"),
        ("Succeeded", "True", "PyTorchJobSucceeded"),
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
    here.wait_log(f"{job.name}-worker-0", "epoch 6/", "pytorch")  # so the checkpoint of epoch 5 is complete
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


@pytest.mark.long
def test_a_replaced_worker_joins_again_at_etcd(here: Cluster, etcd: str) -> None:
    """It is worker 0, at which the workers meet without etcd."""
    manifest = example("pytorch-etcd.yaml")
    (container,) = manifest["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    container["args"][-1] = f"--checkpoint=/shared/{here.namespace}.pt"
    job = here.create(manifest)
    here.wait_pods(
        job.uid, lambda pods: [p["status"].get("phase") for p in pods] == ["Running", "Running"], "both workers run"
    )
    hosts = {f"{job.name}-worker-0", f"{job.name}-worker-1"}
    wait_rendezvous(here, etcd, manifest["spec"]["elasticPolicy"]["rdzvId"], hosts)
    # epoch 4 needs both workers, and rank 0 saves epoch 3 before it: whichever rank is lost, the checkpoint is complete
    here.wait_log(f"{job.name}-worker-1", "epoch 4/", "pytorch")
    first = {index: job.pod("worker", index)["metadata"]["uid"] for index in (0, 1)}
    here.core.delete_namespaced_pod(f"{job.name}-worker-0", here.namespace, grace_period_seconds=0)
    status = job.wait_end()
    assert status["state"] == "Succeeded", status
    logs = {index: log(here, job, "worker", index) for index in (0, 1)}
    last = {index: job.pod("worker", index)["metadata"]["uid"] for index in (0, 1)}
    assert (last[0] != first[0], last[1] == first[1]) == (True, True), "only the lost worker was replaced"
    assert "all 2 processes are there" in logs[0], logs
    assert all(int(GOES_ON.findall(text)[-1]) > 3 for text in logs.values()), logs
    (whole,) = [text for text in logs.values() if ACCURACY.search(text)]
    accuracy, processes = final(whole)
    assert processes == 2
    assert accuracy >= 0.95


def test_the_older_backend_of_etcd(here: Cluster, etcd: str) -> None:
    manifest = example("pytorch-etcd.yaml")
    policy = manifest["spec"]["elasticPolicy"]
    policy.update(rdzvBackend="etcd", maxReplicas=2)
    (container,) = manifest["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    container["args"] = ["--num-epochs=15"]
    job = here.create(manifest)
    status = job.wait_end()
    assert status["state"] == "Succeeded", status
    (whole,) = [text for text in (log(here, job, "worker", index) for index in (0, 1)) if ACCURACY.search(text)]
    accuracy, processes = final(whole)
    assert processes == 2
    assert accuracy >= 0.95
    state = json.loads(etcd_value(here, etcd, f"torchelastic/p2p/run_{policy['rdzvId']}/rdzv/active_version") or "{}")
    assert (state.get("status"), state.get("participants")) == ("closed", [0, 1]), state


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
