"""A job of many replicas: what all of its processes read alike is stored once, and each process reads all of it."""

from __future__ import annotations

import json

from support.live_jobs import UNTIL_ENDED, UNTIL_RELEASED, Cluster, Job, Resource, v1_job

WORKERS = 60
PRINTS = 'echo "$MX_CONFIG"; '


def test_every_process_reads_the_whole_cluster_and_its_own_place(here: Cluster) -> None:
    """The kubelet joins the two halves. The workers need no place to run for that: they wait for a node forever."""
    manifest = v1_job(
        "large",
        run_policy={"cleanPodPolicy": "Running"},
        scheduler=PRINTS + UNTIL_RELEASED,
        server=PRINTS + UNTIL_ENDED,
        worker=(WORKERS, "exit 1"),
    )
    replicas = manifest["spec"]["mxReplicaSpecs"]
    replicas["Worker"]["template"]["spec"]["nodeSelector"] = {"there-is": "none"}
    job = here.create(manifest)
    here.wait_pods(job.uid, lambda pods: len(pods) == WORKERS + 2 and _started(pods, 2), "two of 62 run")
    for type_ in ("scheduler", "server"):
        mx_config = json.loads(here.wait_log(job.pod(type_)["metadata"]["name"], "\n"))
        assert mx_config["task"] == {"type": type_, "index": 0}
        assert [member["url"] for member in mx_config["cluster"]["worker"]] == [
            f"large-worker-{n}" for n in range(WORKERS)
        ]
    (shared,) = _config_maps(here, job)
    assert all(len(json.dumps(pod["spec"])) < 4096 for pod in job.pods()), "no pod says all of it itself"
    job.release("scheduler")
    assert job.wait_end()["state"] == "Succeeded"
    assert shared not in _config_maps(here, job)


def _started(pods: list[Resource], count: int) -> bool:
    return sum(pod["status"].get("phase") == "Running" for pod in pods) == count


def _config_maps(here: Cluster, job: Job) -> list[str]:
    found = here.core.list_namespaced_config_map(here.namespace, label_selector=f"dljob.operator/job-uid={job.uid}")
    return [one.metadata.name for one in found.items]
