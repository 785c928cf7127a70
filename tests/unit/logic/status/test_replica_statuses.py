"""Counts of replicas by state, in the status formats."""

from __future__ import annotations

from collections import Counter

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import replica_statuses as rs
from support.builders import PYTORCH, Pod, mxjob, observed, pod_of, pytorchjob

V1ALPHA1 = mxjob().v1alpha1().servers(2).workers(3).restart("Never").job()
V1 = mxjob().v1().servers(2).workers(3).restart("Never").job()


def worker(index: int = 0, attempt: int = 0) -> Pod:
    return pod_of(V1ALPHA1, "worker", index, attempt)


@pytest.mark.parametrize(
    ("pod", "state"),
    [
        (worker(), "Pending"),
        (worker().waiting("ErrImagePull"), "Pending"),
        (worker().running(), "Running"),
        (worker().restarted(1), "Running"),
        (worker().succeeded(), "Succeeded"),
        (worker().exited(0), "Succeeded"),
        (worker().exited(1), "Failed"),
        (worker().failed(1), "Failed"),
        (worker().refused_by_node(), "Failed"),
    ],
)
def test_state_of_a_pod(pod: Pod, state: str) -> None:
    assert rs.state_of(pod.view()) == state


def test_count() -> None:
    pods = [
        pod_of(V1ALPHA1, "scheduler").running(),
        worker(0).succeeded(),
        worker(1).running().deleting(),
        pod_of(V1ALPHA1, "server", 0).failed(1),
        pod_of(V1ALPHA1, "server", 0, attempt=1).running(),
    ]
    counts = rs.count(V1ALPHA1, observed(V1ALPHA1, pods), {"worker": {2}})
    assert {t: +c for t, c in counts.items()} == {
        "Scheduler": Counter(Running=1),
        "Server": Counter(Running=1, Pending=1),
        "Worker": Counter(Succeeded=2, Pending=1),
    }
    assert rs.summary(V1ALPHA1, counts) == "4/6"
    assert not rs.all_up(V1ALPHA1, counts)


def test_a_pod_that_the_job_has_no_place_for_is_not_counted() -> None:
    wider = mxjob().v1alpha1().servers(2).workers(4).restart("Never").job()
    counts = rs.count(V1ALPHA1, observed(V1ALPHA1, [pod_of(wider, "worker", 3).running()]), {})
    assert +counts["Worker"] == Counter(Pending=3)


def test_which_replicas_have_a_pod_and_which_run() -> None:
    wider = mxjob().v1alpha1().servers(2).workers(4).restart("Never").job()
    pods = [worker(2).running(), worker(0), worker(1).running().deleting(), pod_of(wider, "worker", 3).running()]
    found = rs.present(V1ALPHA1, observed(V1ALPHA1, pods))
    assert found["created"] == {"Scheduler": [], "Server": [], "Worker": [0, 2]}
    assert found["running"] == {"Scheduler": [], "Server": [], "Worker": [2]}


@pytest.mark.parametrize(
    ("states", "up"),
    [({"Running": 1, "Pending": 2}, True), ({"Failed": 2, "Pending": 1}, False), ({"Failed": 3}, True)],
)
def test_of_elastic_workers_one_is_enough(states: dict[str, int], up: bool) -> None:
    job = parse_job(pytorchjob(0, 3, elasticPolicy={"minReplicas": 1, "maxReplicas": 3}), PYTORCH)
    assert rs.all_up(job, {"Worker": Counter(states)}) is up


def test_all_up() -> None:
    counts = {"Scheduler": Counter(Running=1), "Server": Counter(Running=2), "Worker": Counter(Succeeded=3)}
    assert rs.all_up(V1ALPHA1, counts)


def test_the_list_of_v1alpha1() -> None:
    counts = {
        "Scheduler": Counter(Running=1, Pending=0),
        "Server": Counter(Pending=1, Running=1),
        "Worker": Counter(Failed=1, Running=1, Succeeded=1),
    }
    assert rs.render(V1ALPHA1, counts) == [
        {"ReplicasStates": {"Running": 1}, "mx_replica_type": "SCHEDULER", "state": "Running"},
        {"ReplicasStates": {"Pending": 1, "Running": 1}, "mx_replica_type": "SERVER", "state": "Pending"},
        {
            "ReplicasStates": {"Failed": 1, "Running": 1, "Succeeded": 1},
            "mx_replica_type": "WORKER",
            "state": "Failed",
        },
    ]


def test_the_map_of_v1() -> None:
    counts = {
        "Scheduler": Counter(Succeeded=1),
        "Server": Counter(Running=2),
        "Worker": Counter(Failed=1, Running=1, Pending=1),
    }
    rendered = rs.render(V1, counts)
    selector = rendered["Worker"].pop("selector")
    assert selector == f"dljob.operator/job-uid={V1.uid},dljob.operator/replica-type=worker"
    assert rendered["Worker"] == {"active": 1, "failed": 1}
    assert rendered["Scheduler"].items() >= {"succeeded": 1}.items()
    assert "active" not in rendered["Scheduler"]


def test_once_it_has_succeeded_v1_takes_what_still_ran_for_done() -> None:
    counts = {"Worker": Counter(Running=2, Succeeded=1, Failed=1)}
    assert +rs.settled(V1, counts)["Worker"] == Counter(Succeeded=3, Failed=1)
    assert rs.settled(V1ALPHA1, counts) == counts
