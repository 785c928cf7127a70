"""What is left of a finished job."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.policies.cleanup import is_clean, leftovers
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed
from builders import mxjob, observed, pod_of

SERVICES = {"digits-scheduler-0", "mxjob-aycw"}


def finished(policy: str) -> tuple[DLJob, Observed]:
    """One pod in each state that it can be in when the job ends."""
    job = mxjob("digits").v1().workers(6).option(RuntimeId="aycw").run_policy(cleanPodPolicy=policy).job()
    states = [
        pod_of(job, "scheduler").succeeded(),
        pod_of(job, "worker", 0).running(),
        pod_of(job, "worker", 1),
        pod_of(job, "worker", 2).failed(1),
        pod_of(job, "worker", 3).restarted(1),
        pod_of(job, "worker", 4).exited(0),
        pod_of(job, "worker", 5).running().deleting(),
    ]
    return job, observed(job, states)


@pytest.mark.parametrize(
    ("policy", "deleted"),
    [
        ("All", {"scheduler-0", "worker-0", "worker-1", "worker-2", "worker-3", "worker-4"}),
        ("Running", {"worker-0", "worker-1", "worker-3", "worker-4"}),
        ("None", set()),
    ],
)
def test_which_pods_go(policy: str, deleted: set[str]) -> None:
    job, seen = finished(policy)
    going = leftovers(job, seen)
    assert {d.name.removeprefix("digits-") for d in going if d.kind == "Pod"} == deleted
    assert {d.name for d in going if d.kind == "Service"} == (SERVICES if policy != "None" else set())
    assert all(d.uid for d in going), "only that very object"


def test_a_pod_whose_program_has_just_ended_keeps_its_log() -> None:
    """The kubelet says so of the container before it says so of the pod."""
    job, _ = finished("Running")
    pod = pod_of(job, "scheduler").succeeded().change(lambda p: p["status"].update(phase="Running"))
    assert leftovers(job, observed(job, [pod], services=False)) == ()


@pytest.mark.parametrize(("policy", "clean"), [("All", False), ("Running", False), ("None", True)])
def test_terminating_pods_are_waited_for(policy: str, clean: bool) -> None:
    job, _ = finished(policy)
    seen = observed(job, [pod_of(job, "worker", 5).running().deleting()], services=False)
    assert is_clean(job, seen) is clean


def test_nothing_left() -> None:
    job, _ = finished("Running")
    assert is_clean(job, observed(job, [pod_of(job, "scheduler").succeeded()], services=False))
    assert not is_clean(job, observed(job, []))
