"""successPolicy and enableDynamicWorker of v1 TFJobs, like in training-operator 1.9."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from support.builders import TENSORFLOW, Resource, tfjob
from support.fake_cluster import FakeCluster


def fake_cluster(
    policy: str | None = None, dynamic: bool | None = None, restart: str | None = None, **counts: int
) -> FakeCluster:
    resource: Resource = tfjob("kubeflow.org/v1", "tfReplicaSpecs", **counts)
    for name, value in (("successPolicy", policy), ("enableDynamicWorker", dynamic)):
        if value is not None:
            resource["spec"][name] = value
    if restart:
        for entry in resource["spec"]["tfReplicaSpecs"].values():
            entry["restartPolicy"] = restart
    made = FakeCluster(resource, TENSORFLOW)
    made.start()
    return made


def ended(made: FakeCluster, *ends: tuple[str, int, int]) -> str | None:
    for type_, index, code in ends:
        made.exit(type_, index, code)
        made.settle()
    return made.status["state"] if made.status["state"] in ("Succeeded", "Failed") else None


# --- successPolicy


@pytest.mark.parametrize("policy", [None, ""])
def test_without_a_chief_the_first_worker_decides(policy: str | None) -> None:
    made = fake_cluster(policy, worker=2, ps=1)
    assert ended(made, ("worker", 1, 0)) is None
    assert ended(made, ("worker", 0, 0)) == "Succeeded"


def test_all_workers() -> None:
    made = fake_cluster("AllWorkers", worker=3, ps=1)
    assert ended(made, ("worker", 0, 0), ("worker", 2, 0)) is None
    assert ended(made, ("worker", 1, 0)) == "Succeeded"


def test_all_workers_remembers_those_whose_pods_are_gone() -> None:
    made = fake_cluster("AllWorkers", worker=2)
    assert ended(made, ("worker", 0, 0)) is None
    made.user_deletes("example-job-worker-0")
    made.settle()
    assert made.replicas() == ["worker-1"], "what has succeeded is not run again"
    assert ended(made, ("worker", 1, 0)) == "Succeeded"


@pytest.mark.parametrize("chief", ["chief", "master"])
def test_with_a_chief_it_decides_whatever_the_policy(chief: str) -> None:
    made = fake_cluster("AllWorkers", worker=2, **{chief: 1})
    assert ended(made, ("worker", 0, 0), ("worker", 1, 0)) is None
    assert ended(made, (chief, 0, 0)) == "Succeeded"


def test_a_failed_worker_fails_the_job_whatever_the_policy() -> None:
    assert ended(fake_cluster("AllWorkers", worker=2), ("worker", 1, 1)) == "Failed"


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("successPolicy", "Any", "spec.successPolicy: 'Any' is none of AllWorkers, or empty"),
        ("successPolicy", ["AllWorkers"], "spec.successPolicy"),
        ("enableDynamicWorker", "yes", "spec.enableDynamicWorker must be true or false, not 'yes'"),
    ],
)
def test_bad_values(field: str, value: Any, said: str) -> None:
    resource = tfjob("kubeflow.org/v1", "tfReplicaSpecs", worker=1)
    resource["spec"][field] = value
    with pytest.raises(InvalidJob) as caught:
        parse_job(resource, TENSORFLOW)
    assert said in str(caught.value)


# --- enableDynamicWorker


def resize(made: FakeCluster, workers: int) -> None:
    made.edit(lambda spec: spec["tfReplicaSpecs"]["Worker"].update(replicas=workers))
    made.settle()
    made.run_all()
    made.settle()


def uids(made: FakeCluster) -> dict[str, str]:
    return {name: pod["metadata"]["uid"] for name, pod in made.pods.items()}


def test_more_and_fewer_workers_leave_the_others_alone() -> None:
    made = fake_cluster(dynamic=True, chief=1, worker=2, ps=1)
    before = uids(made)
    resize(made, 4)
    assert before.items() < uids(made).items()
    assert made.replicas() == ["chief-0", "ps-0", "worker-0", "worker-1", "worker-2", "worker-3"]
    resize(made, 1)
    kept = {name: uid for name, uid in before.items() if name != "example-job-worker-1"}
    assert uids(made) == kept
    assert made.status["replicas"] == "3/3"
    assert not [e for e in made.events if e.reason == "TFJobChanged"]


def test_more_parameter_servers_are_another_cluster() -> None:
    made = fake_cluster(dynamic=True, chief=1, worker=1, ps=1)
    before = set(uids(made).values())
    made.edit(lambda spec: spec["tfReplicaSpecs"]["PS"].update(replicas=2))
    made.settle()
    assert not before & set(uids(made).values())


def test_workers_that_are_not_elastic_all_restart() -> None:
    made = fake_cluster(worker=2, ps=1)
    before = set(uids(made).values())
    resize(made, 3)
    assert not before & set(uids(made).values())


@pytest.mark.parametrize(("restart", "code"), [("Never", 137), ("ExitCode", 1)])
def test_a_lost_worker_is_not_missed(restart: str, code: int) -> None:
    made = fake_cluster(dynamic=True, restart=restart, chief=1, worker=2, ps=1)
    assert ended(made, ("worker", 1, code)) is None
    assert f"exited with {code}" in made.status["reason"]
    assert made.status["reason"].startswith("the others go on: ")
    assert made.status["replicaStatuses"]["Worker"]["failed"] == 1
    made.advance(400)
    made.settle()
    assert made.attempt("worker", 1) == 0, "by its policy the operator does not restart it"
    assert "retries" not in made.status
    assert ended(made, ("worker", 0, code)) is None, "the chief may do without any"
    assert ended(made, ("chief", 0, 0)) == "Succeeded"


@pytest.mark.parametrize("type_", ["chief", "ps"])
def test_others_are_missed(type_: str) -> None:
    made = fake_cluster(dynamic=True, chief=1, worker=1, ps=1)
    assert ended(made, (type_, 0, 1)) == "Failed"


def test_a_worker_with_a_retryable_code_is_started_again() -> None:
    made = fake_cluster(dynamic=True, restart="ExitCode", chief=1, worker=1)
    made.exit("worker", 0, 137)
    made.settle()
    made.advance(60)
    made.settle()
    assert made.attempt("worker", 0) == 1


@pytest.mark.parametrize("policy", ["", "AllWorkers"])
def test_where_workers_decide_the_last_of_them_does(policy: str) -> None:
    """training-operator would wait forever for a success that is no longer possible."""
    made = fake_cluster(policy, dynamic=True, worker=3, ps=1)
    assert ended(made, ("worker", 0, 5), ("worker", 1, 0)) is None
    assert ended(made, ("worker", 2, 0)) == "Failed"
    assert made.status["failure"]["pod"] == "example-job-worker-0"


def test_the_first_worker_still_decides_by_its_success() -> None:
    made = fake_cluster(dynamic=True, worker=2, ps=1)
    assert ended(made, ("worker", 1, 5)) is None
    assert ended(made, ("worker", 0, 0)) == "Succeeded"


def test_a_worker_lost_at_the_start_does_not_keep_the_job_from_running() -> None:
    made = FakeCluster(
        {**tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=2)},
        TENSORFLOW,
    )
    made.edit(lambda spec: spec.update(enableDynamicWorker=True))
    made.settle()
    made.exit("worker", 1, 1)
    made.run_all()
    made.settle()
    assert made.status["phase"] == "Running"


# --- more replicas than the programs may accept


def unusual(fake_cluster: FakeCluster) -> list[str]:
    return [f"{one.type} {one.message}" for one in fake_cluster.events if one.reason == "UnusualReplicas"]


def test_several_evaluators_are_accepted_with_a_warning() -> None:
    """As in training-operator, which accepts them; TensorFlow's strategies refuse a second one."""
    fake_cluster = FakeCluster(tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=1, evaluator=2), TENSORFLOW)
    fake_cluster.start()
    fake_cluster.settle()
    text = "Warning spec.tfReplicaSpecs.Evaluator.replicas is 2: the programs may refuse more than 1 Evaluator"
    assert unusual(fake_cluster) == [text]
    assert fake_cluster.status["state"] == "Running"
    fake_cluster.edit(lambda spec: spec["tfReplicaSpecs"]["Evaluator"].update(replicas=3))
    fake_cluster.settle()
    assert unusual(fake_cluster) == [text, text.replace("is 2", "is 3")]


@pytest.mark.parametrize("evaluators", [0, 1])
def test_one_evaluator_is_usual(evaluators: int) -> None:
    job = tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=1, evaluator=evaluators)
    fake_cluster = FakeCluster(job, TENSORFLOW)
    fake_cluster.start()
    assert unusual(fake_cluster) == []
