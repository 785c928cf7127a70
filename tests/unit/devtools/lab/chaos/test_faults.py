"""A seed determines the schedule, and every kind of fault occurs."""

from __future__ import annotations

import pytest
from devtools.lab.chaos import faults
from devtools.lab.chaos.faults import KINDS, Fault, Timing

TIMING = Timing(300)


def test_a_seed_determines_the_schedule() -> None:
    assert faults.schedule(7, TIMING) == faults.schedule(7, TIMING)
    assert faults.schedule(7, TIMING) != faults.schedule(8, TIMING)


@pytest.mark.parametrize("total", [len(KINDS), 40, 200, 1000])
def test_every_kind_occurs_in_a_schedule_of_the_planned_size(total: int) -> None:
    timing = Timing(total)
    made = faults.schedule(1, timing)
    assert len(made) == total
    assert {fault.kind for fault in made} == {kind.name for kind in KINDS}
    assert {fault.round for fault in made} == set(range(timing.rounds))
    assert all(0 <= fault.at <= timing.chaos for fault in made)


def test_faults_are_ordered_by_round_and_time() -> None:
    made = faults.schedule(3, TIMING)
    assert made == sorted(made, key=lambda fault: (fault.round, fault.at, fault.number))


def test_a_static_pod_is_not_killed_more_often_than_the_kubelet_restarts_it() -> None:
    gap = faults.BY_NAME["API server restarted"].gap
    assert faults.counts(10_000, 2400)["API server restarted"] == 1 + int(2400 / gap)
    assert faults.counts(1000, 60)["etcd restarted"] == 1


def test_the_shares_follow_the_weights() -> None:
    found = faults.counts(1000, 2400)
    assert found["lost response"] == pytest.approx(4 * found["leader stopped"], abs=4)


def test_a_duration_is_within_its_bounds() -> None:
    for fault in faults.schedule(5, TIMING):
        least, most = faults.BY_NAME[fault.kind].seconds
        assert least <= fault.seconds <= most


@pytest.mark.parametrize(("pick", "chosen"), [(0.0, "a"), (0.5, "b"), (0.999, "c")])
def test_a_fault_chooses_one_of_the_present_objects(pick: float, chosen: str) -> None:
    assert Fault(0, "pod deleted", 0, 0.0, pick=pick).chosen(["a", "b", "c"]) == chosen
