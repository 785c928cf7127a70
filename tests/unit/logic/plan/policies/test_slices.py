"""A reconcile writes a slice of a large job; the next one plans the rest from what exists then."""

from __future__ import annotations

import json

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import Owner
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.observed_state import build_observed_state
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan import plan as plan_
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.inputs import PlanSettings
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import slices
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Deletion, Plan, PodToCreate
from support.builders import MXNET, MXJob, grouped
from support.fake_cluster import FakeCluster

REPLICAS = 2 * slices.LARGEST + 100
TOTAL = REPLICAS + 2
"""With the scheduler and a server."""


class SlicedCluster(FakeCluster):
    """A cluster whose operator watches, so that its plans are slices."""

    def planned(self) -> Plan:
        job = parse_job(self.resource, self.framework)
        observed = build_observed_state(
            Owner("default", job.uid), self.framework.container, self.pods.values(), self.services.values(), {}
        )
        settings = PlanSettings(largest_slice=slices.LARGEST)
        return plan_.plan(job, self.framework, observed, self.now, settings)


@pytest.fixture
def cluster() -> SlicedCluster:
    return SlicedCluster(MXJob("large").scheduler(1).servers(1).workers(REPLICAS))


def _facts(plan: Plan) -> tuple[int, int, bool, float | None]:
    return len(plan.pods), len(plan.deletions), plan.is_partial, plan.requeue_after


def test_a_large_job_is_created_in_slices(cluster: SlicedCluster) -> None:
    plans = [cluster.step() for _ in range(4)]
    assert [_facts(plan) for plan in plans] == [
        (slices.LARGEST, 0, True, 0.0),
        (slices.LARGEST, 0, True, 0.0),
        (TOTAL - 2 * slices.LARGEST, 0, False, None),
        (0, 0, False, None),
    ]
    assert len(cluster.pods) == TOTAL
    assert [plan.missing_pods for plan in plans] == [TOTAL, TOTAL - slices.LARGEST, TOTAL - 2 * slices.LARGEST, 0]


@pytest.mark.parametrize(("window", "pods"), [(None, slices.LARGEST), (1, 256), (2, 512), (32, slices.LARGEST)])
def test_a_slice_beside_other_jobs_is_for_each_write_at_a_time(window: int | None, pods: int) -> None:
    assert slices.largest_slice(window) == pods


@pytest.mark.parametrize(
    ("template", "created"),
    [(slices.BYTES // 8, [2 + 7, 7, 6]), (slices.BYTES, [2] + [1] * 20)],
    ids=["an eighth of the limit", "more than the limit"],
)
def test_a_slice_has_as_many_pods_as_fit_into_its_bytes(template: int, created: list[int]) -> None:
    wide = MXJob("wide").scheduler(1).servers(1).workers(20).container("Worker", command=["x" * template])
    cluster = SlicedCluster(wide)
    plans = [cluster.step() for _ in created]
    assert [len(plan.pods) for plan in plans] == created
    assert [plan.is_partial for plan in plans] == [True] * (len(created) - 1) + [False]


@pytest.mark.parametrize(("surplus", "count"), [(0, 3), (1, 2)])
def test_a_slice_may_fill_its_bytes_exactly(monkeypatch: pytest.MonkeyPatch, surplus: int, count: int) -> None:
    job = MXJob("wide").workers(4).job()
    group = job.group("Worker")
    assert group
    monkeypatch.setattr(slices, "BYTES", 3 * len(json.dumps(group.template)) - surplus)
    starts = tuple(PodToCreate(group, index, 0) for index in range(4))
    assert slices.first_starts(starts, 100) == starts[:count]
    assert slices.first_starts(starts, None) == starts, "one reconcile has to create all"


@pytest.mark.parametrize(("most", "left", "is_partial"), [(None, 3, False), (4, 3, False), (3, 3, False), (2, 2, True)])
def test_the_deletions_of_a_slice(most: int | None, left: int, is_partial: bool) -> None:
    deletions = tuple(Deletion("Pod", name, "1") for name in "abc")
    cut = slices.cut_deletions(Plan(deletions=deletions, requeue_after=9.0), most)
    assert cut.deletions == deletions[:left]
    assert (cut.is_partial, cut.requeue_after) == (is_partial, 0.0 if is_partial else 9.0)


def test_a_large_job_is_suspended_in_slices(cluster: SlicedCluster) -> None:
    for _ in range(4):
        cluster.step()
    cluster.edit(lambda spec: spec.setdefault("runPolicy", {}).update(suspend=True))
    suspended = [_facts(cluster.step()) for _ in range(3)]
    assert suspended[:2] == [(0, slices.LARGEST, True, 0.0)] * 2
    assert suspended[2][1:3] == (TOTAL - 2 * slices.LARGEST, False)


def test_a_suspended_job_starts_no_further_slice(cluster: SlicedCluster) -> None:
    cluster.step()
    cluster.edit(lambda spec: spec.setdefault("runPolicy", {}).update(suspend=True))
    assert not cluster.step().pods


def test_without_an_engine_that_watches_one_reconcile_creates_all() -> None:
    assert len(FakeCluster(MXJob("large").scheduler(1).servers(1).workers(REPLICAS)).step().pods) == TOTAL


def test_a_slice_counts_the_template_of_each_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers of a large template, then four of a small one."""
    resource = grouped(MXJob("wide").workers(6).resource(), "Worker", large=(2, {"command": ["x" * 1000]}))
    group = parse_job(resource, MXNET).group("Worker")
    assert group
    small = len(json.dumps(group.template))
    monkeypatch.setattr(slices, "BYTES", 2 * len(json.dumps(group.template_of(0).template)) + 3 * small)
    starts = tuple(PodToCreate(group, index, 0) for index in range(6))
    assert slices.first_starts(starts, 100) == starts[:5]
