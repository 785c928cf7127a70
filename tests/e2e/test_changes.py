"""What happens to a running job from outside: edits and deletions. Each heals without help."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.live_jobs import UNTIL_ENDED, Cluster, Resource, until, v1_job, v1alpha1_job


def names(pods: list[dict]) -> set[str]:  # type: ignore[type-arg]
    return {p["metadata"]["name"] for p in pods}


def test_deleted_pod_comes_back_under_its_name(here: Cluster) -> None:
    job = here.create(v1alpha1_job("pod-deleted"))
    job.wait_running()
    before = job.pod("worker")
    here.core.delete_namespaced_pod(before["metadata"]["name"], here.namespace)

    def back(pods: list[dict]) -> bool:  # type: ignore[type-arg]
        return any(
            p["metadata"]["name"] == before["metadata"]["name"]
            and p["metadata"]["uid"] != before["metadata"]["uid"]
            and p["status"].get("phase") == "Running"
            for p in pods
        )

    here.wait_pods(job.uid, back, "the worker's pod again")


def test_deleted_service_comes_back(here: Cluster) -> None:
    job = here.create(v1alpha1_job("service-deleted"))
    job.wait_running()
    service = here.services(job.uid)[0]["metadata"]
    here.core.delete_namespaced_service(service["name"], here.namespace)
    from kubernetes import watch

    stream = watch.Watch().stream(
        here.core.list_namespaced_service,
        here.namespace,
        field_selector=f"metadata.name={service['name']}",
        timeout_seconds=30,
    )
    assert any(e["type"] == "ADDED" and e["object"].metadata.uid != service["uid"] for e in stream)


def test_scaling_restarts_the_cluster_in_its_new_shape(here: Cluster) -> None:
    job = here.create(v1alpha1_job("scaled"))
    job.wait_running()
    spec = job.get()["spec"]
    spec["replicaSpecs"][2]["replicas"] = 2
    job.patch({"spec": spec})

    def reshaped(pods: list[dict]) -> bool:  # type: ignore[type-arg]
        if len(pods) != 4 or any(p["status"].get("phase") != "Running" for p in pods):
            return False
        env = [{e["name"]: e.get("value") for e in p["spec"]["containers"][0]["env"]} for p in pods]
        return all(e["DMLC_NUM_WORKER"] == "2" for e in env)

    here.wait_pods(job.uid, reshaped, "four pods that know of two workers")
    status = job.wait(lambda s: s.get("replicas") == "4/4", "4/4 replicas")
    assert status["observedGeneration"] == 2


def test_deleting_the_job_deletes_all_that_it_owned(here: Cluster) -> None:
    job = here.create(v1_job("job-deleted"))
    job.wait_running()
    assert len(here.services(job.uid)) == 2, "one for all, and v1's short name of the scheduler"
    job.delete()
    here.wait_pods(job.uid, lambda pods: not pods, "all pods gone")
    until(lambda: not here.services(job.uid))  # the garbage collector deletes them by themselves


def test_suspend_and_resume(here: Cluster) -> None:
    job = here.create(v1_job("suspended"))
    job.wait_running()
    job.patch({"spec": {"runPolicy": {"suspend": True}}})
    here.wait_pods(job.uid, lambda pods: not pods, "no pods while suspended")
    status = job.wait(lambda s: s.get("state") == "Suspended", "state Suspended")
    assert status["replicas"] == "0/3"
    job.patch({"spec": {"runPolicy": {"suspend": False}}})
    status = job.wait(lambda s: s.get("replicas") == "3/3" and s.get("state") == "Running", "3/3 replicas")
    assert ("Suspended", "False") in [(c["type"], c["status"]) for c in status["conditions"]]


@pytest.mark.parametrize("of", [v1_job, v1alpha1_job])
def test_deleted_and_created_again_at_once(here: Cluster, of: Callable[..., Resource]) -> None:
    """What the first one owned is still there, and not yet marked for deletion, when the second one comes."""
    first = here.create(of("again", worker=(4, UNTIL_ENDED)))
    first.wait_running()
    first.delete()
    second = here.create(of("again", worker=(4, UNTIL_ENDED)))
    status = second.wait(lambda s: s.get("phase") == "Running" or "failure" in s, "the second one runs")
    assert "failure" not in status
    assert {p["metadata"]["ownerReferences"][0]["uid"] for p in second.pods()} == {second.uid}
