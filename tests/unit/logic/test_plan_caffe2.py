"""The life of a Caffe2Job: equal workers, all of which must succeed."""

from __future__ import annotations

import pytest
from support.builders import CAFFE2, caffe2job
from support.fake_cluster import World


def started(**pod: str) -> World:
    world = World(caffe2job(pod=pod), CAFFE2)
    world.start()
    return world


def test_names_of_the_pods() -> None:
    world = started()
    assert sorted(world.pods) == ["example-job-worker-0", "example-job-worker-1"]
    assert world.status["state"] == "Running"
    assert world.status["replicaStatuses"] == {"active": 2}
    reasons = [c["reason"] for c in world.status["conditions"]]
    assert reasons == ["Caffe2JobCreated", "Caffe2JobRunning"]


def test_a_worker_that_waits_to_start_counts_as_active() -> None:
    world = World(caffe2job(), CAFFE2)
    world.settle()
    assert world.status["replicaStatuses"] == {"active": 2}
    assert (world.status["replicas"], world.status["phase"]) == ("0/2", "Creating")


def test_it_succeeds_when_all_workers_have() -> None:
    world = started()
    world.exit("worker", 0, 0)
    world.settle()
    assert world.outcome == ("Running", "Running")
    assert world.status["replicaStatuses"] == {"active": 1, "succeeded": 1}
    world.exit("worker", 1, 0)
    world.settle()
    assert world.outcome == ("Done", "Succeeded")
    assert world.status["replicaStatuses"] == {"succeeded": 2}
    assert world.status["conditions"][-1]["reason"] == "Caffe2JobSucceeded"
    assert world.conditions == [("Created", "True"), ("Running", "False"), ("Succeeded", "True")]
    assert sorted(world.pods) == ["example-job-worker-0", "example-job-worker-1"], "their logs stay readable"


def test_a_failed_worker_fails_the_job_and_frees_the_others() -> None:
    world = started()
    world.exit("worker", 1, 137, message="no more")
    world.settle()
    assert world.outcome == ("Failed", "Failed")
    assert world.status["conditions"][-1]["reason"] == "Caffe2JobFailed"
    assert world.status["replicaStatuses"] == {"active": 1, "failed": 1}
    failure = world.status["failure"]
    assert (failure["pod"], failure["container"], failure["exitCode"]) == ("example-job-worker-1", "caffe2", 137)
    assert sorted(world.pods) == ["example-job-worker-1"]


@pytest.mark.parametrize("policy", ["OnFailure", "Always"])
def test_unless_its_template_restarts_it(policy: str) -> None:
    world = started(restartPolicy=policy)
    world.exit("worker", 1, 1)
    world.settle()
    assert world.outcome == ("Running", "Running")
    assert len(world.created) == 2, "in place, by the kubelet"


def test_a_finished_worker_is_not_run_again_when_its_pod_goes() -> None:
    world = started()
    world.exit("worker", 0, 0)
    world.settle()
    world.user_deletes("example-job-worker-0")
    world.settle()
    assert (world.replicas(), len(world.created)) == (["worker-1"], 2)
    world.exit("worker", 1, 0)
    world.settle()
    assert world.outcome == ("Done", "Succeeded")


def test_an_edited_backend_reaches_every_worker() -> None:
    world = started()
    world.edit(lambda spec: spec["backendSpecs"].update(redisHost="other"))
    world.settle()
    assert len(world.created) == 4
    for pod in world.pods.values():
        assert {"name": "REDIS_HOST", "value": "other"} in pod["spec"]["containers"][0]["env"]


def test_a_job_that_could_never_meet_fails_at_once_and_can_be_mended() -> None:
    world = World(caffe2job(backendSpecs={"backendType": "nfs"}), CAFFE2)
    world.settle()
    assert world.outcome == ("Failed", "Failed")
    assert world.status["conditions"][-1]["reason"] == "Caffe2JobFailedValidation"
    assert "spec.backendSpecs.nfsPath is missing" in world.status["reason"]
    world.edit(lambda spec: spec["backendSpecs"].update(nfsPath="/shared"))
    world.start()
    assert world.outcome == ("Running", "Running")
