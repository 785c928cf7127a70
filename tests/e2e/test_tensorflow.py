"""Real TensorFlow: the seed's manifest verbatim, and our own examples."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from e2e.support import UNTIL_ENDED, Cluster, Job, shell_template
from kubernetes import client, watch
from seeds import seed_manifest

ROOT = Path(__file__).resolve().parents[2]
ACCURACY = re.compile(r"final: test_accuracy=([0-9.]+)")


def accuracy(here: Cluster, job: Job) -> float:
    """What the master's own log says."""
    log = here.log(job.pod("master")["metadata"]["name"], "tensorflow")
    found = ACCURACY.findall(log)
    assert found, f"no accuracy in the master's log:\n{log}"
    return float(found[-1])


@pytest.mark.training
def test_seed_manifest_trains_verbatim(here: Cluster) -> None:
    job = here.create(seed_manifest("tf_job.yaml"))
    running = job.wait_running(240)
    rid = running["runtimeId"]
    config_map = here.core.read_namespaced_config_map(f"cm-ps-{rid}", here.namespace)
    assert config_map.metadata.owner_references[0].uid == job.uid
    server = job.pod("ps", 1)
    assert re.fullmatch(rf"ps-{rid}-1-[a-z0-9]{{5}}", server["metadata"]["name"])
    container = server["spec"]["containers"][0]
    assert (container["name"], container["image"]) == ("tensorflow", "tensorflow/tensorflow:1.3.0")
    assert {"name": "ps-config-volume", "mountPath": "/ps-server"} in container["volumeMounts"]
    config = json.loads(next(e["value"] for e in container["env"] if e["name"] == "TF_CONFIG"))
    assert config["task"] == {"type": "ps", "index": 1}

    status = job.wait_end(300)
    assert (status["phase"], status["state"], status["reason"]) == ("Done", "Succeeded", "")
    # as the seed's own sample prints it
    assert status["replicaStatuses"] == [
        {"ReplicasStates": {"Succeeded": 1}, "state": "Succeeded", "tf_replica_type": "MASTER"},
        {"ReplicasStates": {"Running": 1}, "state": "Running", "tf_replica_type": "WORKER"},
        {"ReplicasStates": {"Running": 2}, "state": "Running", "tf_replica_type": "PS"},
    ]
    assert accuracy(here, job) >= 0.95


@pytest.mark.training
@pytest.mark.parametrize("name", ["tensorflow-digits.yaml", "tensorflow-digits-v1alpha1.yaml"])
def test_example_trains(here: Cluster, name: str) -> None:
    job = here.create(yaml.safe_load((ROOT / "examples" / name).read_text(encoding="utf-8")))
    status = job.wait_end(300)
    assert status["state"] == "Succeeded", status["reason"]
    assert accuracy(here, job) >= 0.95


def tfjob(name: str, **scripts: str) -> dict[str, Any]:
    """A TfJob whose processes are shells."""
    entries = [
        {"tfReplicaType": type_.upper(), "template": shell_template(script, container="tensorflow")}
        for type_, script in scripts.items()
    ]
    return {
        "apiVersion": "tensorflow.org/v1alpha1",
        "kind": "TfJob",
        "metadata": {"name": name},
        "spec": {"replicaSpecs": entries},
    }


@pytest.mark.parametrize(("code", "state"), [(0, "Succeeded"), (127, "Failed")])
def test_the_masters_exit_code_decides(here: Cluster, code: int, state: str) -> None:
    status = here.create(tfjob("decides", master=f"exit {code}", worker=UNTIL_ENDED)).wait_end()
    assert status["state"] == state


def test_a_retryable_exit_code_and_a_worker_that_ends(here: Cluster) -> None:
    job = here.create(tfjob("restarts", master="exit 143", worker="exit 0"))

    def restarts(pods: list[dict[str, Any]]) -> int:
        return sum(s["restartCount"] for p in pods for s in p["status"].get("containerStatuses") or ())

    here.wait_pods(job.uid, lambda pods: restarts(pods) >= 2, "two restarts of the master")
    assert job.status["state"] == "Running"


def with_page(name: str, directory: str) -> dict[str, Any]:
    """The example with TensorBoard, in a directory of the test's own: the node keeps the events of earlier runs."""
    job: dict[str, Any] = yaml.safe_load(
        (ROOT / "examples" / "tensorflow-tensorboard.yaml").read_text(encoding="utf-8")
    )
    job["metadata"]["name"] = name
    pod = job["spec"]["replicaSpecs"][0]["template"]["spec"]
    for volumes in (pod["volumes"], job["spec"]["tensorboard"]["volumes"]):
        volumes[0]["hostPath"]["path"] = directory
    return job


def fetched(here: Cluster, service: str, path: str, wanted: str, timeout: float = 90) -> str:
    """A page behind the API server's proxy, once it says ``wanted``: TensorBoard reads its directory now and then."""
    end, text = time.monotonic() + timeout, ""
    while time.monotonic() < end:
        try:
            text = str(here.core.connect_get_namespaced_service_proxy_with_path(service, here.namespace, path))
        except client.ApiException as e:
            text = str(e)
        if wanted in text:
            return text
        time.sleep(1)
    raise AssertionError(f"{service}/{path} does not say {wanted!r} after {timeout} s: {text[-500:]}")


@pytest.mark.training
def test_tensorboard_shows_real_events(here: Cluster) -> None:
    job = here.create(with_page("shown", f"/tmp/{here.namespace}"))
    status = job.wait_end(240)
    assert status["state"] == "Succeeded", status["reason"]
    name = f"tensorboard-{status['runtimeId']}"
    assert [s["metadata"]["name"] for s in here.services(job.uid)] == [name], "only the page outlives the training"
    fetched(here, f"{name}:80", "", "TensorBoard", 240)
    fetched(here, f"{name}:80", "data/plugin/scalars/tags", "loss")

    apps = client.AppsV1Api(here.core.api_client)
    listed = apps.list_namespaced_deployment(here.namespace)
    assert [d.metadata.name for d in listed.items] == [name]
    job.delete()
    version = listed.metadata.resource_version
    for event in watch.Watch().stream(
        apps.list_namespaced_deployment, here.namespace, resource_version=version, timeout_seconds=60
    ):
        if event["type"] == "DELETED":
            return
    raise AssertionError("the Deployment outlives its job")


@pytest.mark.parametrize("name", ["tf-tensorboard-azure.yaml", "tf-tensorboard-gke.yaml"])
def test_tensorboard_manifests_yield_the_right_objects(here: Cluster, name: str) -> None:
    manifest = seed_manifest(name)
    job = here.create(manifest)
    here.wait_pods(job.uid, lambda pods: len(pods) == 1, "the master's pod")
    rid = job.wait(lambda s: bool(s.get("runtimeId")), "a status")["runtimeId"]
    deployment = client.AppsV1Api(here.core.api_client).read_namespaced_deployment(f"tensorboard-{rid}", here.namespace)
    pod = deployment.spec.template.spec
    asked = manifest["spec"]["tensorboard"]
    assert pod.containers[0].command[3:] == ["--logdir", asked["logDir"], "--host", "0.0.0.0"]
    azure = [(v.azure_file.secret_name, v.azure_file.share_name) for v in pod.volumes or ()]
    assert azure == [(v["azureFile"]["secretName"], v["azureFile"]["shareName"]) for v in asked.get("volumes", [])]
    service = here.core.read_namespaced_service(f"tensorboard-{rid}", here.namespace)
    assert (service.spec.type, service.spec.ports[0].port, service.spec.ports[0].target_port) == ("ClusterIP", 80, 6006)
