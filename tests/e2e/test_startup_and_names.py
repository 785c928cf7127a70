"""Pods that the kubelet cannot start, names that somebody else has, and pods that are created again, on a real cluster."""

from __future__ import annotations

from typing import Any

from support.live_jobs import UNTIL_ENDED, Cluster, Resource, until, v1_job

MISSING = {"volumes": [{"name": "data", "secret": {"secretName": "nope"}}]}
"""A volume of the scheduler's pod, which its container mounts: the kubelet passes over any other."""
CAUSE = 'FailedMount: MountVolume.SetUp failed for volume "data" : secret "nope" not found'


def job_of(name: str, run_policy: Resource | None = None, **scheduler: Any) -> Resource:
    """A v1 job of a scheduler with these fields and two workers."""
    manifest = v1_job(name, "Never", run_policy, scheduler=UNTIL_ENDED, worker=(2, UNTIL_ENDED))
    replicas = manifest["spec"]["mxReplicaSpecs"]
    manifest["spec"]["mxReplicaSpecs"] = {type_: replicas[type_] for type_ in ("Scheduler", "Worker")}
    spec = replicas["Scheduler"]["template"]["spec"]
    spec |= scheduler
    if "volumes" in scheduler:
        spec["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    return manifest


def secret(here: Cluster) -> None:
    here.core.create_namespaced_secret(here.namespace, {"metadata": {"name": "nope"}, "stringData": {"a": "b"}})


def test_a_volume_that_is_missing_is_named_until_it_is_there(here: Cluster) -> None:
    job = here.create(job_of("volume", **MISSING))
    status = job.wait(lambda s: "nope" in (s.get("reason") or ""), "the reason in the status")
    assert status["reason"] == f"volume-scheduler-0: {CAUSE}"
    assert status["state"] == "Created"
    secret(here)
    # the kubelet's next try may be two minutes away
    assert job.wait_running(timeout=180)["reason"] == ""


def test_the_pending_timeout_quotes_the_kubelet_and_nothing_starts_later(here: Cluster) -> None:
    job = here.create(job_of("late", {"pendingTimeoutSeconds": 12, "cleanPodPolicy": "None"}, **MISSING))
    status = job.wait_end()
    assert status["failure"]["reason"] == "PendingTimeoutExceeded"
    assert status["failure"]["message"].endswith(CAUSE)
    left = here.wait_pods(job.uid, lambda pods: len(pods) == 2, "the pod that has not started is gone")
    assert all("worker" in pod["metadata"]["name"] for pod in left), "None keeps those that run"


def test_a_pod_that_is_pending_when_its_job_fails_is_deleted(here: Cluster) -> None:
    manifest = job_of("pending", {"cleanPodPolicy": "None"}, **MISSING)
    container = manifest["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    container["command"] = ["sh", "-c", "exit 7"]
    job = here.create(manifest)
    assert job.wait_end()["failure"]["exitCode"] == 7
    secret(here)
    left = here.wait_pods(job.uid, lambda pods: len(pods) == 2, "the scheduler's pod is gone")
    assert all("worker" in pod["metadata"]["name"] for pod in left), "None keeps those that have run"


def test_a_job_goes_on_once_the_name_that_it_needs_is_free(here: Cluster) -> None:
    """Both that of another object, and those that a job leaves behind that was deleted with --cascade=orphan."""
    manifest = job_of("taken")
    first = here.create(manifest)
    first.wait_running()
    where = ("kubeflow.org", "v1", here.namespace, "mxjobs", "taken")
    here.custom.delete_namespaced_custom_object(*where, propagation_policy="Orphan")
    first.wait_deleted()
    orphans = here.pods(**{"dljob.operator/job-uid": first.uid})
    assert len(orphans) == 3
    assert not any(pod["metadata"].get("ownerReferences") for pod in orphans)

    second = here.create(manifest)
    label = f"dljob.operator/job-uid={first.uid}"
    status = second.wait(lambda s: label in (s.get("reason") or ""), "the reason in the status")
    assert status["state"] == "Created"
    assert f"kubectl delete pods,services -l {label}" in status["reason"]
    here.wait_event("taken", "Warning", "FailedCreatePod", label)
    here.core.delete_collection_namespaced_pod(here.namespace, label_selector=label, grace_period_seconds=0)
    here.core.delete_collection_namespaced_service(here.namespace, label_selector=label)
    assert second.wait_running()["reason"] == ""


def test_each_pod_that_is_created_again_has_an_event(here: Cluster) -> None:
    job = here.create(job_of("again"))
    job.wait_running()
    here.wait_event("again", "Normal", "SuccessfulCreatePod", "Created 3 of 3 pods")
    here.core.delete_namespaced_pod("again-worker-1", here.namespace, grace_period_seconds=1)
    here.wait_event("again", "Normal", "SuccessfulCreatePod", "Created 1 of 3 pods: again-worker-1")
    template = {"metadata": {"annotations": {"example.com/edited": "yes"}}}
    job.patch({"spec": {"mxReplicaSpecs": {"Worker": {"template": template}}}})

    def times(pod: str) -> int:
        """How many Events name the pod: the two may be replaced together or one after the other."""
        return sum(reason == "SuccessfulCreatePod" and pod in text for _, reason, text in here.events("again"))

    until(lambda: (times("again-worker-0"), times("again-worker-1")) == (2, 3))
    job.wait_running()
    job.patch({"spec": {"mxReplicaSpecs": {"Worker": {"replicas": 3}}}})
    here.wait_event("again", "Normal", "SuccessfulCreatePod", "of 4 pods: ")
