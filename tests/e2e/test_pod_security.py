"""Jobs in a namespace that enforces the Pod Security level `restricted`: what the operator adds meets it too."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client
from support.live_jobs import SHELL_IMAGE, UNTIL_ENDED, Cluster, shell_template, until
from support.pod_security import strict

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


@pytest.fixture
def restricted(here: Cluster) -> Cluster:
    here.core.patch_namespace(here.namespace, {"metadata": {"labels": RESTRICTED}})
    return here


def replica(script: str, container: str, count: int = 1) -> dict[str, Any]:
    return {"replicas": count, "template": strict(shell_template(script, None, container))}


def job(api_version: str, kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


JOBS = [
    job("kubeflow.org/v1", "PyTorchJob", "pytorch",
        pytorchReplicaSpecs={"Master": replica("exit 0", "pytorch"), "Worker": replica("exit 0", "pytorch")}),
    job("kubeflow.org/v2beta1", "MPIJob", "mpi", sshAuthMountPath="/keys", runPolicy={"cleanPodPolicy": "Running"},
        mpiReplicaSpecs={"Launcher": replica("cat /keys/id_rsa /etc/mpi/hostfile >/dev/null", "main"),
                         "Worker": replica(UNTIL_ENDED, "main")}),
    # its kubectl comes from an image that runs as root where nothing forbids it
    job("kubeflow.org/v1", "MPIJob", "mpi-v1", runPolicy={"cleanPodPolicy": "Running"},
        mpiReplicaSpecs={"Launcher": replica("/etc/mpi/kubexec.sh mpi-v1-worker-0 true", "main"),
                         "Worker": replica(UNTIL_ENDED, "main")}),
]  # fmt: skip


@pytest.mark.parametrize("manifest", JOBS, ids=lambda one: str(one["metadata"]["name"]))
def test_a_job_whose_templates_meet_the_level_runs(restricted: Cluster, manifest: dict[str, Any]) -> None:
    status = restricted.create(manifest).wait_end()
    assert status["state"] == "Succeeded", status["reason"]


@pytest.mark.training
def test_the_default_server_and_the_tensorboard_run(restricted: Cluster) -> None:
    """Both have no template of their own; the user has only the master's."""
    logs: dict[str, Any] = {"volumes": [{"name": "logs", "emptyDir": {}}]}
    manifest = job("tensorflow.org/v1alpha1", "TfJob", "tensorflow", tfImage="dljob/tensorflow-digits:1",
                   replicaSpecs=[{"tfReplicaType": "MASTER", **replica(UNTIL_ENDED, "tensorflow")},
                                 {"tfReplicaType": "PS", "replicas": 1}],
                   tensorboard={"logDir": "/logs", "volumeMounts": [{"name": "logs", "mountPath": "/logs"}], **logs},
                   )  # fmt: skip
    manifest["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]["image"] = SHELL_IMAGE
    made = restricted.create(manifest)
    status = made.wait_running()
    assert made.pod("ps")["status"]["phase"] == "Running"
    apps = client.AppsV1Api(restricted.core.api_client)

    def is_available() -> bool:
        found = apps.read_namespaced_deployment(f"tensorboard-{status['runtimeId']}", restricted.namespace)
        return bool(found.status.available_replicas)

    until(is_available, 240)


def test_a_template_that_does_not_meet_the_level_is_quoted_and_runs_once_it_does(restricted: Cluster) -> None:
    worker = {"replicas": 1, "template": shell_template("exit 0", None, "tensorflow")}
    made = restricted.create(job("kubeflow.org/v1", "TFJob", "loose", tfReplicaSpecs={"Worker": worker}))
    status = made.wait(lambda s: "violates PodSecurity" in (s.get("reason") or ""), "the reason")
    for field in ("allowPrivilegeEscalation != false", "unrestricted capabilities", "runAsNonRoot != true"):
        assert field in status["reason"]
    assert made.pods() == []
    made.patch({"spec": {"tfReplicaSpecs": {"Worker": {"template": strict(worker["template"])}}}})
    status = made.wait_end()
    assert (status["state"], status["reason"]) == ("Succeeded", "")


def test_an_image_that_runs_as_root_is_named(restricted: Cluster) -> None:
    """That of a container of the operator's own gets a user; that of the job is its user's affair."""
    (proxy, *_) = restricted.core.list_namespaced_pod("kube-system", label_selector="k8s-app=kube-proxy").items
    manifest = job("kubeflow.org/v1", "JAXJob", "root", jaxReplicaSpecs={"Worker": replica("exit 0", "jax")})
    container = manifest["spec"]["jaxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    # the node has it, and it runs as root
    container |= {"image": proxy.spec.containers[0].image, "imagePullPolicy": "Never"}
    made = restricted.create(manifest)
    text = "container has runAsNonRoot and image will run as root"
    made.wait(lambda s: text in (s.get("reason") or ""), "the reason")
    container["image"] = SHELL_IMAGE
    del container["imagePullPolicy"]
    made.patch({"spec": manifest["spec"]})
    assert made.wait_end()["state"] == "Succeeded"
