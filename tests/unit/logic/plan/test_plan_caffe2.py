"""The life cycle of a Caffe2Job, whose workers must all succeed."""

from __future__ import annotations

import pytest
from support.builders import CAFFE2, caffe2job
from support.fake_cluster import FakeCluster


def started(**pod: str) -> FakeCluster:
    fake_cluster = FakeCluster(caffe2job(pod=pod), CAFFE2)
    fake_cluster.start()
    return fake_cluster


def test_names_of_the_pods() -> None:
    fake_cluster = started()
    assert sorted(fake_cluster.pods) == ["example-job-worker-0", "example-job-worker-1"]
    assert fake_cluster.status["state"] == "Running"
    assert fake_cluster.status["replicaStatuses"] == {"active": 2}
    reasons = [c["reason"] for c in fake_cluster.status["conditions"]]
    assert reasons == ["Caffe2JobCreated", "Caffe2JobRunning"]


def test_a_worker_that_waits_to_start_counts_as_active() -> None:
    fake_cluster = FakeCluster(caffe2job(), CAFFE2)
    fake_cluster.settle()
    assert fake_cluster.status["replicaStatuses"] == {"active": 2}
    assert (fake_cluster.status["replicas"], fake_cluster.status["phase"]) == ("0/2", "Creating")


def test_it_succeeds_when_all_workers_have() -> None:
    fake_cluster = started()
    fake_cluster.exit("worker", 0, 0)
    fake_cluster.settle()
    assert fake_cluster.outcome == ("Running", "Running")
    assert fake_cluster.status["replicaStatuses"] == {"active": 1, "succeeded": 1}
    fake_cluster.exit("worker", 1, 0)
    fake_cluster.settle()
    assert fake_cluster.outcome == ("Done", "Succeeded")
    assert fake_cluster.status["replicaStatuses"] == {"succeeded": 2}
    assert fake_cluster.status["conditions"][-1]["reason"] == "Caffe2JobSucceeded"
    assert fake_cluster.conditions == [("Created", "True"), ("Running", "False"), ("Succeeded", "True")]
    assert sorted(fake_cluster.pods) == ["example-job-worker-0", "example-job-worker-1"], "their logs stay readable"


def test_a_failed_worker_fails_the_job_and_the_others_are_deleted() -> None:
    fake_cluster = started()
    fake_cluster.exit("worker", 1, 137, message="no more")
    fake_cluster.settle()
    assert fake_cluster.outcome == ("Failed", "Failed")
    assert fake_cluster.status["conditions"][-1]["reason"] == "Caffe2JobFailed"
    assert fake_cluster.status["replicaStatuses"] == {"active": 1, "failed": 1}
    failure = fake_cluster.status["failure"]
    assert (failure["pod"], failure["container"], failure["exitCode"]) == ("example-job-worker-1", "caffe2", 137)
    assert sorted(fake_cluster.pods) == ["example-job-worker-1"]


@pytest.mark.parametrize("policy", ["OnFailure", "Always"])
def test_unless_its_template_restarts_it(policy: str) -> None:
    fake_cluster = started(restartPolicy=policy)
    fake_cluster.exit("worker", 1, 1)
    fake_cluster.settle()
    assert fake_cluster.outcome == ("Running", "Running")
    assert len(fake_cluster.created) == 2, "in place, by the kubelet"


def test_a_finished_worker_is_not_run_again_when_its_pod_goes() -> None:
    fake_cluster = started()
    fake_cluster.exit("worker", 0, 0)
    fake_cluster.settle()
    fake_cluster.user_deletes("example-job-worker-0")
    fake_cluster.settle()
    assert (fake_cluster.replicas(), len(fake_cluster.created)) == (["worker-1"], 2)
    fake_cluster.exit("worker", 1, 0)
    fake_cluster.settle()
    assert fake_cluster.outcome == ("Done", "Succeeded")


def test_an_edited_backend_reaches_every_worker() -> None:
    fake_cluster = started()
    fake_cluster.edit(lambda spec: spec["backendSpecs"].update(redisHost="other"))
    fake_cluster.settle()
    assert len(fake_cluster.created) == 4
    for pod in fake_cluster.pods.values():
        assert {"name": "REDIS_HOST", "value": "other"} in pod["spec"]["containers"][0]["env"]


def test_a_job_without_a_rendezvous_fails_and_an_edit_fixes_it() -> None:
    fake_cluster = FakeCluster(caffe2job(backendSpecs={"backendType": "nfs"}), CAFFE2)
    fake_cluster.settle()
    assert fake_cluster.outcome == ("Failed", "Failed")
    assert fake_cluster.status["conditions"][-1]["reason"] == "Caffe2JobFailedValidation"
    assert "spec.backendSpecs.nfsPath is missing" in fake_cluster.status["reason"]
    fake_cluster.edit(lambda spec: spec["backendSpecs"].update(nfsPath="/shared"))
    fake_cluster.start()
    assert fake_cluster.outcome == ("Running", "Running")
