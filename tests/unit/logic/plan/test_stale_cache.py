"""A deposed leader whose cache is old cannot create a second pod of a replica: the API server refuses the name."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Plan
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import CAFFE2, MXJob, caffe2job, mxjob
from support.fake_cluster import FakeCluster

FLAVORS = ("v1", "v1alpha1", "fioravanzo", "mpba")
SCOPES = ("Replica", "Job")


def job(flavor: str, scope: str = "Replica") -> MXJob:
    made = mxjob().flavor(flavor).servers(1).workers(2).restart("OnFailure" if scope == "Job" else "Never")
    return made if flavor == "mpba" else made.run_policy(restartScope=scope)


def carry_out_late(fake_cluster: FakeCluster, plan: Plan) -> None:
    """The writes of a plan that was made before others: its status write is a conflict. Fails for two pods of a rank."""
    fake_cluster.carry_out(plan, status_gets_lost=True)


def lose_and_replace(fake_cluster: FakeCluster) -> None:
    fake_cluster.user_deletes(fake_cluster.pod("worker", 0)["metadata"]["name"])
    fake_cluster.kubelet_deletes()


def fail_and_replace(fake_cluster: FakeCluster) -> None:
    fake_cluster.exit("worker", 0, 1)


def edit(fake_cluster: FakeCluster) -> None:
    spec = fake_cluster.resource["spec"]
    entries = spec if isinstance(spec, list) else spec.get("replicaSpecs") or list(spec["mxReplicaSpecs"].values())
    entries[-1]["template"]["spec"]["containers"][0]["image"] = "train:2"
    fake_cluster.resource["metadata"]["generation"] += 1


@pytest.mark.parametrize("event", [lose_and_replace, fail_and_replace, edit])
@pytest.mark.parametrize("flavor", FLAVORS)
def test_the_first_pods_are_created_again_after_they_were_replaced(
    flavor: str, event: Callable[[FakeCluster], None]
) -> None:
    """The deposed leader hung before its first request; its cache has none of the job's pods."""
    fake_cluster = FakeCluster(job(flavor))
    late = fake_cluster.planned()
    fake_cluster.start()
    event(fake_cluster)
    for _ in range(6):
        fake_cluster.advance(100)
        fake_cluster.settle()
        carry_out_late(fake_cluster, late)
    fake_cluster.run_all()
    fake_cluster.settle()
    assert fake_cluster.replicas() == ["scheduler-0", "server-0", "worker-0", "worker-1"]


def test_the_pods_of_an_earlier_attempt_of_the_whole_job() -> None:
    fake_cluster = FakeCluster(job("v1alpha1", "Job"))
    late = fake_cluster.planned()
    fake_cluster.start()
    fake_cluster.exit("worker", 0, 1)
    fake_cluster.settle()
    fake_cluster.advance(100)
    fake_cluster.settle()
    assert fake_cluster.attempt("worker", 1) == 1
    carry_out_late(fake_cluster, late)
    assert fake_cluster.attempt("worker", 1) == 1


def test_a_caffe2job() -> None:
    fake_cluster = FakeCluster(caffe2job(2, {"restartPolicy": "Never"}, runPolicy={"restartScope": "Job"}), CAFFE2)
    late = fake_cluster.planned()
    fake_cluster.start()
    lose_and_replace(fake_cluster)
    fake_cluster.settle()
    carry_out_late(fake_cluster, late)


HAPPENS: tuple[Callable[[FakeCluster], object], ...] = (
    FakeCluster.step,
    FakeCluster.kubelet_deletes,
    FakeCluster.run_all,
    lambda cluster: cluster.advance(30),
    edit,
    *(
        (lambda cluster, act=act, index=index: _to_worker(cluster, act, index))
        for act in ("exit", "delete", "evict")
        for index in (0, 1)
    ),
)


def _to_worker(fake_cluster: FakeCluster, act: str, index: int) -> None:
    if f"worker-{index}" not in fake_cluster.replicas():
        return
    pod = fake_cluster.pod("worker", index)
    if act == "delete":
        fake_cluster.user_deletes(pod["metadata"]["name"])
    elif pod["status"]["phase"] == "Running":
        fake_cluster.evict("worker", index) if act == "evict" else fake_cluster.exit("worker", index, 137)


@settings(max_examples=200, deadline=None)
@given(
    flavor=st.sampled_from(FLAVORS),
    scope=st.sampled_from(SCOPES),
    events=st.lists(st.sampled_from(range(len(HAPPENS) + 2)), max_size=40),
)
def test_whatever_happens_between_the_plan_and_its_writes(flavor: str, scope: str, events: list[int]) -> None:
    """Of two leaders one plans from a cache of any age. FakeCluster fails where two pods of a rank exist."""
    fake_cluster = FakeCluster(job(flavor, scope))
    late = fake_cluster.planned()
    for event in events:
        if event == len(HAPPENS):
            late = fake_cluster.planned()
        elif event > len(HAPPENS):
            carry_out_late(fake_cluster, late)
        else:
            HAPPENS[event](fake_cluster)
    carry_out_late(fake_cluster, late)
