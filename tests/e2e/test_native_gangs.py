"""Gangs of Kubernetes itself, with its scheduler, on simulated nodes with room for one of two jobs.

``tests/integration/rights/test_gang_rights.py`` has a cluster that does not serve the API. ``DLJOB_GANG_ROUNDS`` is the
number of rounds in which two jobs race for the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from devtools.lab.chaos.cli import kwok_program
from devtools.testbed.base.settings import settings_from
from devtools.testbed.operator import OperatorProcess
from kubernetes import client
from support.gang_races import ROUNDS, end, is_stuck, job, placed, race, winner
from support.live_jobs import Cluster, Job, Resource, until
from support.small_nodes import small_nodes, succeeds

GROUP, VERSION, PLURAL = "scheduling.k8s.io", "v1beta1", "podgroups"


@pytest.fixture(scope="module")
def served(cluster: Path, api: client.ApiClient) -> None:
    try:
        client.CustomObjectsApi(api).get_api_resources(GROUP, VERSION)
    except client.ApiException as error:
        assert error.status == 404, error
        pytest.skip("this cluster does not serve scheduling.k8s.io/v1beta1: Kubernetes 1.37 of `make cluster` does")


@pytest.fixture
def place(cluster: Path, crds: None, served: None, namespace: str, tmp_path: Path) -> Iterator[Cluster]:
    """A namespace, and two nodes of two CPUs that are named after it."""
    here = Cluster(cluster, namespace, own_operator=True)
    with small_nodes(here.core, kwok_program(settings_from()), cluster, namespace, tmp_path):
        yield here


Start = Callable[[str], Any]


@pytest.fixture
def start(place: Cluster, tmp_path: Path) -> Start:
    """An operator of the namespace with this gang scheduler."""

    def operator(scheduler: str) -> OperatorProcess:
        arguments = ["--namespace", place.namespace, *(["--gang-scheduler-name", scheduler] if scheduler else [])]
        return OperatorProcess(place.kubeconfig, tmp_path / f"operator-{scheduler}.log", arguments)

    return operator


def group(here: Cluster, name: str) -> Resource | None:
    try:
        return dict(here.custom.get_namespaced_custom_object(GROUP, VERSION, here.namespace, PLURAL, name))
    except client.ApiException as error:
        assert error.status == 404, error
        return None


def test_without_a_gang_two_jobs_wait_for_each_other(place: Cluster, start: Start) -> None:
    """Both hold half of the room, and neither starts: what the option is for."""
    with start("") as operator:
        operator.wait_ready()
        one, other = race(place, 1)
        until(lambda: is_stuck(one, other))
        for waiting in (one, other):
            reason = waiting.wait(lambda s: "Insufficient cpu" in s.get("reason", ""), "what it waits for")["reason"]
            assert "Unschedulable" in reason
        assert is_stuck(one, other)
        end(one, other)


def test_of_two_jobs_that_do_not_fit_together_one_runs_and_then_the_other(place: Cluster, start: Start) -> None:
    """A gang that waits holds nothing, whatever the order in which the pods come."""
    with start("kubernetes") as operator:
        operator.wait_ready()
        for number in range(ROUNDS):
            found = winner(*race(place, number))
            assert found, "they wait for each other"
            first, second = found
            first.wait_running()
            reason = second.wait(lambda s: "Unschedulable" in s.get("reason", ""), "what it waits for")["reason"]
            assert placed(second) == 0, reason
            for pod in first.pods():
                succeeds(place.core, pod)
            first.wait_end()
            second.wait_running()
            assert placed(second) == 3
            until(lambda: group(place, first.name) is None)  # noqa: B023
            end(first, second)


def test_a_replacement_beside_a_replica_that_has_finished(place: Cluster, start: Start) -> None:
    """The scheduler counts unfinished pods: of a group of three it would wait for ever for the third."""
    with start("kubernetes") as operator:
        operator.wait_ready()
        one = job(place, "one")
        one.wait_running()
        found = group(place, "one")
        assert found is not None
        assert found["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
        succeeds(place.core, one.pod("worker", 0))
        one.wait(lambda s: bool(s.get("completed")), "a completed worker")
        before = one.pod("worker", 1)["metadata"]
        place.core.delete_namespaced_pod(before["name"], place.namespace)
        place.wait_pods(
            one.uid,
            lambda pods: any(
                pod["metadata"]["name"] == before["name"]
                and pod["metadata"]["uid"] != before["uid"]
                and pod["status"]["phase"] == "Running"
                for pod in pods
            ),
            "the new pod runs",
            timeout=60,
        )
        changed = group(place, "one")
        assert changed is not None
        assert changed["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}}
        assert changed["metadata"]["uid"] == found["metadata"]["uid"]


def test_a_suspended_job_has_no_group_and_gets_a_new_one(place: Cluster, start: Start) -> None:
    with start("kubernetes") as operator:
        operator.wait_ready()
        one = job(place, "one")
        one.wait_running()
        found = group(place, "one")
        assert found is not None
        one.patch({"spec": {"runPolicy": {"suspend": True}}})
        one.wait(lambda s: s.get("phase") == "Suspended", "phase Suspended")
        one.patch({"spec": {"runPolicy": {"suspend": False}}})  # while its pods and its group terminate, or later
        one.wait_running()
        anew = group(place, "one")
        assert anew is not None
        assert anew["metadata"]["uid"] != found["metadata"]["uid"]
        assert "deletionTimestamp" not in anew["metadata"]
        one.patch({"spec": {"runPolicy": {"suspend": True}}})
        until(lambda: group(place, "one") is None and not one.pods())


def test_the_status_explains_what_kubernetes_does_not(place: Cluster, start: Start) -> None:
    with start("kubernetes") as operator:
        operator.wait_ready()
        one = job(place, "one", schedulingPolicy={"minAvailable": 4})
        text = "3 of 4 pods of the gang exist, and the scheduler starts none before the others"
        one.wait(lambda s: s.get("reason") == text, "the reason")
        one.patch({"spec": {"runPolicy": {"schedulingPolicy": {"minAvailable": 3}}}})
        assert one.wait_running()["reason"] == ""


def runs_with(place: Cluster, one: Job, priority_class: str) -> None:
    """Wait until the three pods of the job run, all with this priorityClassName."""
    place.wait_pods(
        one.uid,
        lambda pods: (
            [(pod["status"]["phase"], pod["spec"].get("priorityClassName", "")) for pod in pods]
            == [("Running", priority_class)] * 3
        ),
        f"three pods of the priority {priority_class!r}",
        timeout=60,
    )


def test_templates_of_different_priorities_are_refused(place: Cluster, start: Start) -> None:
    """Kubernetes starts no pod of another priority than its group's."""
    with start("kubernetes") as operator:
        operator.wait_ready()
        one = job(place, "one")
        runs_with(place, one, "")
        text = "all pods of a gang have the same priorityClassName"
        master = one.get()["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
        for name in ("system-cluster-critical", None):
            spec = {**master, "priorityClassName": name}
            one.patch({"spec": {"pytorchReplicaSpecs": {"Master": {"template": {"spec": spec}}}}})
            if name:
                one.wait(lambda s: s.get("reason", "").startswith(text), "why")
                place.wait_event("one", "Warning", "FailedCreatePod", text)
                assert [pod["metadata"]["name"] for pod in one.pods()] == ["one-worker-0", "one-worker-1"]
        runs_with(place, one, "")
        one.wait(lambda s: s.get("reason") == "", "no reason any more")


@pytest.fixture
def high(place: Cluster) -> Iterator[str]:
    """A PriorityClass."""
    classes = client.SchedulingV1Api(place.core.api_client)
    name = f"{place.namespace}-high"
    classes.create_priority_class(client.V1PriorityClass(metadata=client.V1ObjectMeta(name=name), value=1000))
    yield name
    classes.delete_priority_class(name)


def test_another_priority_comes_with_another_group(place: Cluster, start: Start, high: str) -> None:
    """That of a group cannot change, and a new pod of another one would never start."""
    with start("kubernetes") as operator:
        operator.wait_ready()
        one = job(place, "one")
        runs_with(place, one, "")
        found = group(place, "one")
        assert found is not None
        one.patch({"spec": {"runPolicy": {"schedulingPolicy": {"priorityClass": high}}}})
        before = one.pod("worker", 1)["metadata"]
        place.core.delete_namespaced_pod(before["name"], place.namespace)
        place.wait_pods(
            one.uid, lambda pods: before["uid"] not in [pod["metadata"]["uid"] for pod in pods], "the old pod is gone"
        )
        runs_with(place, one, "")
        same = group(place, "one")
        assert same is not None
        assert same["metadata"]["uid"] == found["metadata"]["uid"]
        for suspend in (True, False):
            one.patch({"spec": {"runPolicy": {"suspend": suspend}}})
            if suspend:
                until(lambda: not one.pods())
        runs_with(place, one, high)
        anew = group(place, "one")
        assert anew is not None
        assert anew["spec"]["priorityClassName"] == high
