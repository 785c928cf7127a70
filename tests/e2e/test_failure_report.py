"""What the status says of a failed job: pod, container, exit code, reason and the last words, from real pods."""

from __future__ import annotations

from typing import Any

import pytest
from support.live_jobs import SHELL_IMAGE, UNTIL_ENDED, UNTIL_RELEASED, Cluster, v1_job, v1alpha1_job

TALKS = "n=0; while [ $n -lt 200 ]; do n=$((n + 1)); echo step $n; done; echo loss is NaN; exit 3"


def only_scheduler(manifest: dict[str, Any]) -> dict[str, Any]:
    """The pod spec of a v1 job that is left with its scheduler."""
    replicas = manifest["spec"]["mxReplicaSpecs"]
    for type_ in ("Server", "Worker"):
        del replicas[type_]
    spec: dict[str, Any] = replicas["Scheduler"]["template"]["spec"]
    return spec


@pytest.mark.parametrize(
    "manifest",
    [v1alpha1_job("talks", "fioravanzo.org", scheduler=TALKS), v1_job("talks", worker=TALKS)],
    ids=["v1alpha1", "v1"],
)
def test_a_program_that_fails_is_quoted(here: Cluster, manifest: dict[str, Any]) -> None:
    status = here.create(manifest).wait_end()
    failure = status["failure"]
    assert (failure["container"], failure["exitCode"], failure["reason"]) == ("mxnet", 3, "Error")
    lines = failure["message"].splitlines()
    assert lines[-2:] == ["step 200", "loss is NaN"], "the end of its log, though it wrote no termination message"
    assert len(lines) > 20
    assert all(line.startswith("step ") for line in lines[:-1]), "no line is cut"
    assert f"pod {failure['pod']} exited with 3 (Error)" in status["reason"]
    assert status["reason"].endswith("loss is NaN")
    assert status["conditions"][-1]["message"].endswith("loss is NaN")


def test_a_termination_message_of_its_own_comes_before_the_log(here: Cluster) -> None:
    script = "echo chatter; echo disk full > /dev/termination-log; exit 4"
    status = here.create(v1_job("says-why", scheduler=script)).wait_end()
    assert (status["failure"]["exitCode"], status["failure"]["message"]) == (4, "disk full")


def test_killed_for_want_of_memory(here: Cluster) -> None:
    # containerd learns of the kill and of the exit by different events, and may learn of the exit first: several kills and
    # the time between them make sure that it knows of one
    script = "for i in 1 2 3 4; do tail /dev/zero; code=$?; sleep 1; done; exit $code"
    manifest = v1_job("greedy", scheduler=script)
    only_scheduler(manifest)["containers"][0]["resources"]["limits"] = {"memory": "24Mi"}
    status = here.create(manifest).wait_end()
    failure = status["failure"]
    assert (failure["container"], failure["exitCode"], failure["reason"]) == ("mxnet", 137, "OOMKilled")


@pytest.mark.long
def test_evicted(here: Cluster) -> None:
    """The kubelet ends a pod that writes more than it may into its volume."""
    manifest = v1_job("writes-much", scheduler="echo writes; dd if=/dev/zero of=/scratch/x bs=1M count=8; sleep 300")
    pod = only_scheduler(manifest)
    pod["volumes"] = [{"name": "scratch", "emptyDir": {"sizeLimit": "1Mi"}}]
    pod["containers"][0]["volumeMounts"] = [{"name": "scratch", "mountPath": "/scratch"}]
    status = here.create(manifest).wait_end()
    failure = status["failure"]
    assert (failure["pod"], failure["reason"]) == ("writes-much-scheduler-0", "Evicted")
    assert "scratch" in failure["message"], "the kubelet's words"


def test_an_init_container_fails_the_pod(here: Cluster) -> None:
    manifest = v1_job("fetches", scheduler="exit 0")
    only_scheduler(manifest)["initContainers"] = [
        {"name": "fetch", "image": SHELL_IMAGE, "command": ["sh", "-c", "echo no such bucket >&2; exit 7"]}
    ]
    failure = here.create(manifest).wait_end()["failure"]
    assert failure == {
        "pod": "fetches-scheduler-0",
        "container": "fetch",
        "exitCode": 7,
        "reason": "Error",
        "message": "no such bucket",
    }


def test_a_sidecars_failure_is_not_the_jobs(here: Cluster) -> None:
    manifest = v1_job("beside", scheduler=UNTIL_RELEASED)
    only_scheduler(manifest)["containers"].append(
        {"name": "sidecar", "image": SHELL_IMAGE, "command": ["sh", "-c", "exit 5"]}
    )
    job = here.create(manifest)

    def failed_beside(pods: list[dict[str, Any]]) -> bool:
        states = [(s["name"], s["state"]) for p in pods for s in p["status"].get("containerStatuses") or ()]
        return any(name == "sidecar" and "terminated" in state for name, state in states)

    here.wait_pods(job.uid, failed_beside, "the sidecar's end")
    job.release("scheduler")
    assert job.wait_end()["state"] == "Succeeded"


def test_restarts_are_reported_with_the_reason(here: Cluster) -> None:
    """A job that goes on says in its Restarting condition and Event what a replica died of."""
    job = here.create(v1_job("goes-on", "ExitCode", scheduler=UNTIL_ENDED, worker="echo lost a peer; exit 130"))
    status = job.wait(lambda s: s.get("state") == "Restarting", "condition Restarting")
    (message,) = (c["message"] for c in status["conditions"] if c["type"] == "Restarting")
    assert "exited with 130 (Error): lost a peer" in message
