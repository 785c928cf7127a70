"""Jobs that the CRD's schema cannot refuse: a clear end with the reason, an Event, and no silent retry."""

from __future__ import annotations

import pytest
from support.live_jobs import UNTIL_ENDED, Cluster, shell_template, v1_job, v1alpha1_job


def test_template_that_kubernetes_refuses(here: Cluster) -> None:
    manifest = v1alpha1_job("refused")
    container = manifest["spec"]["replicaSpecs"][2]["template"]["spec"]["containers"][0]
    container["volumeMounts"] = [{"name": "nowhere", "mountPath": "/data"}]
    job = here.create(manifest)
    status = job.wait_end()
    assert status["failure"]["reason"] == "RefusedByKubernetes"
    assert 'volumeMounts[0].name: Not found: "nowhere"' in status["reason"]
    here.wait_event("refused", "Warning", "MXJobFailed", "nowhere")
    here.wait_pods(job.uid, lambda pods: not pods, "the pods that were made before the refusal are gone")


def test_key_that_only_kubernetes_knows_to_be_wrong(here: Cluster) -> None:
    """In a group of a TFJob the definition has the upper levels of a template only."""
    group = shell_template(UNTIL_ENDED, None, "tensorflow")
    group["spec"]["containers"][0]["livenessProbe"] = {"exec": {"commands": ["true"]}}
    worker = {"replicas": 2, "restartPolicy": "Never", "template": shell_template(UNTIL_ENDED, None, "tensorflow")}
    worker["groups"] = [{"name": "large", "replicas": 1, "template": group}]
    job = here.create(
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "TFJob",
            "metadata": {"name": "misspelled"},
            "spec": {"tfReplicaSpecs": {"Worker": worker}},
        }
    )
    status = job.wait_end()
    assert status["failure"]["reason"] == "RefusedByKubernetes"
    assert 'unknown field "spec.containers[0].livenessProbe.exec.commands"' in status["reason"]
    here.wait_event("misspelled", "Warning", "TFJobFailed", "exec.commands")
    here.wait_pods(job.uid, lambda pods: not pods, "the pods that were made before the refusal are gone")


def test_mending_a_refused_job_runs_it(here: Cluster) -> None:
    manifest = v1alpha1_job("mended", scheduler="exit 0")
    broken = manifest["spec"]["replicaSpecs"][2]["template"]["spec"]["containers"][0]
    broken["volumeMounts"] = [{"name": "nowhere", "mountPath": "/data"}]
    job = here.create(manifest)
    assert job.wait_end()["state"] == "Failed"
    del broken["volumeMounts"]
    job.patch({"spec": manifest["spec"]})
    assert job.wait(lambda s: s.get("state") == "Succeeded", "success after the edit")["reason"] == ""


@pytest.mark.parametrize("text", ["{{ 1 + 1 }}", "{% for x in y %}", "{{ lookup('pipe', 'id') }}", "{index} {host}"])
def test_strings_of_a_job_are_never_templates(here: Cluster, text: str) -> None:
    manifest = v1alpha1_job("literal")
    for entry in manifest["spec"]["replicaSpecs"]:
        entry["template"]["spec"]["containers"][0]["env"] = [{"name": "TEXT", "value": text}]
        entry["template"]["metadata"] = {"annotations": {"example.com/text": text}}
    job = here.create(manifest)
    pods = here.wait_pods(job.uid, lambda pods: len(pods) == 3, "three pods")
    for pod in pods:
        env = {e["name"]: e.get("value") for e in pod["spec"]["containers"][0]["env"]}
        assert env["TEXT"] == text
        assert pod["metadata"]["annotations"]["example.com/text"] == text
    assert job.wait_running()["reason"] == ""


def test_name_that_is_taken_by_a_stranger(here: Cluster) -> None:
    here.core.create_namespaced_service(
        here.namespace,
        {"metadata": {"name": "taken-scheduler-0"}, "spec": {"clusterIP": "None", "selector": {"not": "ours"}}},
    )
    job = here.create(v1_job("taken"))
    status = job.wait(lambda s: "taken-scheduler-0" in (s.get("reason") or ""), "the reason in the status")
    assert status["reason"].startswith("Service/taken-scheduler-0: an object of that name exists")
    assert "rename the job" in status["reason"]
    assert here.core.read_namespaced_service("taken-scheduler-0", here.namespace).spec.selector == {"not": "ours"}
    here.core.delete_namespaced_service("taken-scheduler-0", here.namespace)
    assert job.wait_running()["reason"] == "", "it goes on by itself"


def test_pod_that_cannot_start_says_why_in_the_status(here: Cluster) -> None:
    manifest = v1alpha1_job("no-image")
    manifest["spec"]["replicaSpecs"][2]["template"]["spec"]["containers"][0]["image"] = "dljob/does-not-exist:1"
    job = here.create(manifest)
    status = job.wait(lambda s: "worker" in (s.get("reason") or ""), "the reason in the status")
    assert "ErrImagePull" in status["reason"] or "ImagePullBackOff" in status["reason"]
    assert status["state"] == "Running"
    assert status["phase"] == "Creating"


def test_job_with_a_long_name_runs_in_v1alpha1(here: Cluster) -> None:
    job = here.create(v1alpha1_job("n" * 63, scheduler="sleep 1"))
    assert job.wait_end()["state"] == "Succeeded"
