"""Jobs that run under the real training-operator go on under this one with the same pods, and back again.

As docs/migration.md has it: one operator stops, the other one starts.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from devtools.lab.bench import tools, training_operator
from devtools.lab.bench.peers import DEFAULT, Peer, Running, chosen
from devtools.testbed.operator import OperatorProcess, free_port
from kubernetes import client
from support.builders import mpijob_v1, paddlejob, pytorchjob, tfjob, xgboostjob
from support.live_jobs import SHELL_IMAGE, UNTIL_RELEASED, Cluster, Job, until

pytestmark = [pytest.mark.exclusive, pytest.mark.full]


def until_released(manifest: dict[str, Any], name: str) -> dict[str, Any]:
    """The job, whose processes all wait until the test lets them exit."""
    manifest["metadata"] = {"name": name}
    (field,) = (key for key in manifest["spec"] if key.endswith("ReplicaSpecs"))
    for replica in manifest["spec"][field].values():
        (container,) = replica["template"]["spec"]["containers"]
        if field == "mpiReplicaSpecs":
            container["name"] = "mpi"
        container.update(image=SHELL_IMAGE, command=["sh", "-c", UNTIL_RELEASED])
        container.pop("args", None)
    return manifest


def condition(status: dict[str, Any], type_: str) -> bool:
    return any(c["type"] == type_ and c["status"] == "True" for c in status.get("conditions") or ())


def pods_of(here: Cluster, name: str) -> dict[str, str]:
    """Name and uid of the pods, by the label that both operators set."""
    found = here.core.list_namespaced_pod(here.namespace, label_selector=f"training.kubeflow.org/job-name={name}")
    return {pod.metadata.name: pod.metadata.uid for pod in found.items}


def release(here: Cluster, job: Job, container: str) -> None:
    for name in pods_of(here, job.name):
        here.release(name, container)


def preflight(kubeconfig: Path, namespace: str) -> dict[str, bool]:
    """By job whether `dljob-operator preflight` says that it can be adopted. The operator here may patch everything."""
    arguments = ["--kubeconfig", str(kubeconfig), "--namespace", namespace, "--service-account", "", "-o", "json"]
    command = [sys.executable, "-m", "dljob_operator", "preflight", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return {job["name"]: job["canBeAdopted"] for job in json.loads(done.stdout)["jobs"]}


@pytest.fixture
def predecessor(cluster: Path, crds: None, api: client.ApiClient) -> Iterator[Peer]:
    """training-operator, with its own definitions of the kinds; this operator's are applied again afterwards."""
    program = tools.training_operator() / "training-operator"

    def command() -> list[str]:
        return [
            str(program), f"--health-probe-bind-address=127.0.0.1:{free_port()}",
            f"--metrics-bind-address=127.0.0.1:{free_port()}", f"--webhook-server-port={free_port()}",
        ]  # fmt: skip

    (default,) = chosen(DEFAULT)
    default.prepare(cluster)
    try:
        yield Peer("before", default.title, command, default.ready, environment=default.environment)
    finally:
        default.clean_up()
        client.CoreV1Api(api).delete_namespace(training_operator.NAMESPACE)
        client.AdmissionregistrationV1Api(api).delete_validating_webhook_configuration(training_operator.WEBHOOK)


def test_jobs_go_on_with_the_same_pods_and_back_again(
    cluster: Path, own: Cluster, namespace: str, predecessor: Peer, tmp_path: Path
) -> None:
    made = {
        # a worker would wait in an init container, whose image is not here
        "pytorch": pytorchjob(master=1),
        "tensorflow": tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=2),
        "xgboost": xgboostjob(worker=1),
        "paddle": paddlejob(worker=2),
        "mpi": mpijob_v1(worker=2),
    }
    jobs: dict[str, Job] = {}
    pods: dict[str, dict[str, str]] = {}
    with Running(predecessor, cluster, tmp_path) as before:
        before.wait_ready()
        for framework, manifest in made.items():
            for name in (f"{framework}-stays", f"{framework}-returns"):
                jobs[name] = own.create(until_released(manifest, name))
        for name, job in jobs.items():
            job.wait(lambda status: condition(status, "Running"), f"{name} runs under training-operator")
            pods[name] = pods_of(own, name)
        assert all(pods.values())
        assert preflight(cluster, namespace) == dict.fromkeys(jobs, True)

    arguments = ("--install-crds", "--namespace", namespace)
    with OperatorProcess(cluster, tmp_path / "ours.log", arguments) as ours:
        ours.wait_ready()
        for name, job in jobs.items():
            own.wait_event(name, "Normal", "Adopted")
            status = job.wait(lambda status: status.get("phase") == "Running", f"{name} runs under this operator")
            assert condition(status, "Running")
            assert pods_of(own, name) == pods[name]
        for framework in made:
            name = f"{framework}-stays"
            release(own, jobs[name], framework)
            assert condition(jobs[name].wait_end(), "Succeeded"), name

    with Running(predecessor, cluster, tmp_path) as after:
        after.wait_ready()
        for framework in made:
            name = f"{framework}-returns"
            assert pods_of(own, name) == pods[name]
            release(own, jobs[name], framework)
            jobs[name].wait(lambda status: condition(status, "Succeeded"), f"{name} ends under training-operator")
        until(lambda: all(condition(job.status, "Succeeded") for job in jobs.values()))
