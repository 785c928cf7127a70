"""Real TensorFlow: the manifest of tf-operator unchanged, and our own examples."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client, watch
from support.live_jobs import SHELL_IMAGE, UNTIL_ENDED, UNTIL_RELEASED, Cluster, Job, shell_template
from support.upstream_manifests import preferred

ROOT = Path(__file__).resolve().parents[2]
ACCURACY = re.compile(r"final: test_accuracy=([0-9.]+)")


def accuracy(here: Cluster, job: Job) -> float:
    """What the master's own log says."""
    log = here.log(job.pod("master")["metadata"]["name"], "tensorflow")
    found = ACCURACY.findall(log)
    assert found, f"no accuracy in the master's log:\n{log}"
    return float(found[-1])


@pytest.mark.training
def test_upstream_manifest_trains(here: Cluster) -> None:
    job = here.create(preferred("tf_job.yaml"))
    running = job.wait_running()
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

    status = job.wait_end()
    assert (status["phase"], status["state"], status["reason"]) == ("Done", "Succeeded", "")
    # as tf-operator's own sample prints it
    assert status["replicaStatuses"] == [
        {"ReplicasStates": {"Succeeded": 1}, "state": "Succeeded", "tf_replica_type": "MASTER"},
        {"ReplicasStates": {"Running": 1}, "state": "Running", "tf_replica_type": "WORKER"},
        {"ReplicasStates": {"Running": 2}, "state": "Running", "tf_replica_type": "PS"},
    ]
    assert accuracy(here, job) >= 0.95


@pytest.mark.training
@pytest.mark.parametrize(
    "name",
    [
        "tensorflow-digits.yaml",
        # the list layout trains with the upstream manifest too, and TensorFlow takes the most processor time of all
        pytest.param("tensorflow-digits-v1alpha1.yaml", marks=pytest.mark.full),
    ],
)
def test_example_trains(here: Cluster, name: str) -> None:
    job = here.create(yaml.safe_load((ROOT / "examples" / name).read_text(encoding="utf-8")))
    status = job.wait_end()
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


def v1(name: str, **scripts: tuple[int, str]) -> dict[str, Any]:
    """A TFJob of v1 whose processes are shells."""
    entries = {
        {"ps": "PS"}.get(type_, type_.title()): {
            "replicas": count,
            "restartPolicy": "Never",
            "template": shell_template(script, None, container="tensorflow"),
        }
        for type_, (count, script) in scripts.items()
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": name},
        "spec": {"tfReplicaSpecs": entries},
    }


def test_v1_all_workers(here: Cluster) -> None:
    manifest = v1("all", worker=(2, f"[ $HOSTNAME = all-worker-0 ] && exit 0; {UNTIL_RELEASED}"), ps=(1, UNTIL_ENDED))
    manifest["spec"]["successPolicy"] = "AllWorkers"
    job = here.create(manifest)
    waiting = job.wait(lambda s: s.get("completed") == {"worker": "0"}, "the first worker's end")
    assert "completionTime" not in waiting
    job.release("worker", 1)
    assert job.wait_end()["state"] == "Succeeded"


def test_v1_workers_come_go_and_fail(here: Cluster) -> None:
    manifest = v1("dynamic", chief=(1, UNTIL_ENDED), ps=(1, UNTIL_ENDED), worker=(2, UNTIL_ENDED))
    manifest["spec"]["enableDynamicWorker"] = True
    job = here.create(manifest)
    job.wait_running()
    before = {p["metadata"]["uid"] for p in job.pods()}
    config = next(e["value"] for e in job.pod("worker", 1)["spec"]["containers"][0]["env"] if e["name"] == "TF_CONFIG")
    assert json.loads(config) == {
        "cluster": {"worker": {"1": "dynamic-worker-1:2222"}, "ps": ["dynamic-ps-0:2222"]},
        "task": {"type": "worker", "index": 1},
    }

    def workers(count: int) -> None:
        job.patch({"spec": {"tfReplicaSpecs": {"Worker": {"replicas": count}}}})
        job.wait(lambda s: s.get("replicas") == f"{count + 2}/{count + 2}", f"{count} workers")

    workers(3)
    assert before < {p["metadata"]["uid"] for p in job.pods()}, "the others were left alone"
    workers(1)
    left = here.wait_pods(job.uid, lambda pods: len(pods) == 3, "the surplus workers' end")
    assert {p["metadata"]["name"] for p in left} == {"dynamic-chief-0", "dynamic-ps-0", "dynamic-worker-0"}
    assert {p["metadata"]["uid"] for p in left} < before


def test_v1_a_lost_worker_is_not_missed(here: Cluster) -> None:
    manifest = v1("lost", chief=(1, UNTIL_RELEASED), ps=(1, UNTIL_ENDED), worker=(2, "echo gone; exit 9"))
    manifest["spec"]["enableDynamicWorker"] = True
    job = here.create(manifest)
    status = job.wait(lambda s: str(s.get("reason")).startswith("the others go on"), "the workers' failure")
    assert "exited with 9 (Error): gone" in status["reason"]
    job.release("chief")
    assert job.wait_end()["state"] == "Succeeded"


def with_tensorboard(name: str, directory: str) -> dict[str, Any]:
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
    """TensorBoard's page behind the API server's proxy, once it says ``wanted``: TensorBoard reads its directory now and then."""
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
    job = here.create(with_tensorboard("shown", f"/tmp/{here.namespace}"))
    status = job.wait_end()
    assert status["state"] == "Succeeded", status["reason"]
    name = f"tensorboard-{status['runtimeId']}"
    assert [s["metadata"]["name"] for s in here.services(job.uid)] == [name], "only TensorBoard outlives the training"
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


def test_the_tensorboard_follows_the_job(here: Cluster) -> None:
    """Edits take effect in place, and what somebody deletes comes back at once, the servers' program too."""
    manifest = tfjob("followed", master=UNTIL_ENDED)
    manifest["spec"]["replicaSpecs"].append({"tfReplicaType": "PS"})
    manifest["spec"] |= {"tfImage": SHELL_IMAGE, "tensorboard": {"logDir": "/first"}}
    job = here.create(manifest)
    here.wait_pods(job.uid, lambda pods: len(pods) == 2, "the pods")
    rid = job.wait(lambda s: bool(s.get("runtimeId")), "a status")["runtimeId"]
    name = f"tensorboard-{rid}"
    apps = client.AppsV1Api(here.core.api_client)

    def follow(lister: Any, version: str, wanted: Callable[[str, dict[str, Any]], bool]) -> None:
        stream = watch.Watch().stream(lister, here.namespace, resource_version=version, timeout_seconds=30)
        assert any(wanted(event["type"], event["raw_object"]) for event in stream), "not after 30 s"

    first = apps.read_namespaced_deployment(name, here.namespace)
    job.patch({"spec": {"tensorboard": {"logDir": "/second", "serviceType": "NodePort"}}})
    follow(
        apps.list_namespaced_deployment,
        first.metadata.resource_version,
        lambda _, d: "/second" in d["spec"]["template"]["spec"]["containers"][0]["command"],
    )
    second = apps.read_namespaced_deployment(name, here.namespace)
    assert second.metadata.uid == first.metadata.uid
    follow(
        here.core.list_namespaced_service,
        "0",
        lambda _, s: s["metadata"]["name"] == name and s["spec"]["type"] == "NodePort",
    )

    apps.delete_namespaced_deployment(name, here.namespace)
    follow(
        apps.list_namespaced_deployment,
        second.metadata.resource_version,
        lambda kind, d: kind == "ADDED" and d["metadata"]["uid"] != second.metadata.uid,
    )
    config_map = here.core.read_namespaced_config_map(f"cm-ps-{rid}", here.namespace)
    here.core.delete_namespaced_config_map(f"cm-ps-{rid}", here.namespace)
    follow(
        here.core.list_namespaced_config_map,
        config_map.metadata.resource_version,
        lambda kind, m: kind == "ADDED" and m["metadata"]["name"] == f"cm-ps-{rid}",
    )

    third = apps.read_namespaced_deployment(name, here.namespace)
    job.patch({"spec": {"tensorboard": None}})
    follow(apps.list_namespaced_deployment, third.metadata.resource_version, lambda kind, _: kind == "DELETED")
    assert len(job.pods()) == 2, "the training was left alone"
    assert not [e for e in here.events("followed") if e[1] == "TfJobChanged"]


@pytest.mark.parametrize("name", ["tf-tensorboard-azure.yaml", "tf-tensorboard-gke.yaml"])
def test_tensorboard_manifests_yield_the_right_objects(here: Cluster, name: str) -> None:
    manifest = preferred(name)
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
