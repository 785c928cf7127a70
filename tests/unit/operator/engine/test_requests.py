from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dljob_operator.engine.conditions import after_run
from dljob_operator.engine.requests import CacheView, period_of, request_for_many, request_for_one, target_name, targets
from dljob_operator.runner import Target
from dljob_operator.watches import GVK, Finalizer, Watch

_GVK = GVK("example.com", "v1", "EchoJob")
_ANNOTATION = "ansible.sdk.operatorframework.io/reconcile-period"


def _job(name: str = "j", **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "team", "uid": f"{name}-uid", **metadata},
        "spec": {"a": 1},
    }


class TestTargets:
    def test_an_entry_is_one_and_a_finalizer_with_a_role_of_its_own_another(self) -> None:
        own = Watch(_GVK, role=Path("/r"), finalizer=Finalizer("x/y", role=Path("/f")))
        assert targets([own]) == [
            Target("example.com/v1 EchoJob", role=Path("/r")),
            Target("example.com/v1 EchoJob finalizer", role=Path("/f")),
        ]
        assert target_name(own, finalizing=True) == "example.com/v1 EchoJob finalizer"

    def test_a_finalizer_with_a_role_of_its_own_is_run_by_it(self) -> None:
        watch = Watch(_GVK, role=Path("/r"), finalizer=Finalizer("x/y", role=Path("/f")))
        request = request_for_one(watch, _job(), CacheView(), 5, finalizing=True)
        assert request.target == "example.com/v1 EchoJob finalizer"
        assert request_for_one(watch, _job(), CacheView(), 5).target == "example.com/v1 EchoJob"

    def test_only_a_long_lived_worker_has_its_variables_from_the_start(self) -> None:
        batchable, long_lived = {"dljob_batchable": True, "a": 1}, {"dljob_batchable": True, "dljob_resident": True}
        watches = [Watch(_GVK, role=Path("/r"), vars=variables) for variables in (batchable, long_lived)]
        assert [target.fixed for target in targets(watches)] == [{}, long_lived]

    def test_a_finalizer_of_variables_is_run_by_the_entrys_own_role(self) -> None:
        watch = Watch(_GVK, role=Path("/r"), finalizer=Finalizer("x/y", vars={"state": "absent"}))
        assert [target.name for target in targets([watch])] == ["example.com/v1 EchoJob"]
        request = request_for_one(watch, _job(), CacheView(), 5, finalizing=True)
        assert (request.target, request.values["state"]) == ("example.com/v1 EchoJob", "absent")

    def test_an_entry_that_takes_batches_says_so(self) -> None:
        (target,) = targets([Watch(_GVK, role=Path("/r"), vars={"dljob_batchable": True})])
        assert target.batchable


def test_one_job_is_handed_over_as_ansible_operator_does_and_several_as_a_batch() -> None:
    watch, jobs = Watch(_GVK, role=Path("/r"), mark_unsafe=True), [_job("j"), _job("k")]
    snapshot: dict[str, Any] = {"j-uid": {"Pod": [], "Service": []}}
    cluster_info = {"resources": ["nvidia.com/gpu"]}
    cache = CacheView(snapshot, cluster_info)
    one = request_for_one(watch, jobs[0], cache, 5)
    assert one.values["_example_com_echojob"] is jobs[0]
    assert "_example_com_echojob" in one.unsafe
    assert (one.snapshot, one.timeout, one.cluster_info) == (snapshot, 5, cluster_info)
    many = request_for_many(watch, jobs, cache, 5)
    assert (many.values, many.cluster_info) == ({"dljob_batch": jobs}, cluster_info)


@pytest.mark.parametrize(
    ("annotation", "entry", "default", "period"),
    [
        (None, 0.0, 36000.0, 36000.0),
        (None, 60.0, 36000.0, 60.0),
        ("15s", 60.0, 36000.0, 15.0),
        ("1ns", 60.0, 36000.0, 1.0),
        ("0s", 60.0, 36000.0, None),
        (None, 0.0, 0.0, None),
    ],
)
def test_the_period_is_the_annotations_the_entrys_or_the_default(
    annotation: str | None, entry: float, default: float, period: float | None
) -> None:
    job = _job(annotations={_ANNOTATION: annotation} if annotation else None)
    assert period_of(Watch(_GVK, reconcile_period=entry), job, default) == period


def test_an_annotation_that_is_no_duration_is_an_error() -> None:
    with pytest.raises(ValueError, match="Go duration"):
        period_of(Watch(_GVK), _job(annotations={_ANNOTATION: "often"}), 1.0)


class TestConditions:
    _STATS = {"ok": 2, "changed": 1, "failures": 0, "skipped": 3}

    def _statuses(self, conditions: list[dict[str, Any]]) -> dict[str, str]:
        return {condition["type"]: condition["status"] for condition in conditions}

    def test_a_good_run(self) -> None:
        conditions = after_run([], ok=True, message="", stats=self._STATS, now="T1")
        assert self._statuses(conditions) == {"Running": "True", "Failure": "False", "Successful": "True"}
        assert conditions[0]["ansibleResult"] == {**self._STATS, "completion": "T1"}
        assert [one["reason"] for one in conditions] == ["Successful", "", "Successful"]

    def test_a_failed_run_says_why(self) -> None:
        conditions = after_run([], ok=False, message="m", stats={"failures": 1}, now="T1")
        assert self._statuses(conditions) == {"Running": "False", "Failure": "True", "Successful": "False"}
        failure = next(one for one in conditions if one["type"] == "Failure")
        assert (failure["reason"], failure["message"]) == ("Failed", "m")
        assert failure["ansibleResult"] == {"ok": 0, "changed": 0, "failures": 1, "skipped": 0, "completion": "T1"}

    def test_a_run_that_reports_nothing_has_counted_nothing(self) -> None:
        conditions = after_run([], ok=True, message="", stats={}, now="T1")
        assert conditions[0]["ansibleResult"] == {**dict.fromkeys(self._STATS, 0), "completion": "T1"}

    def test_the_time_of_transition_moves_only_with_the_status_and_foreign_conditions_stay(self) -> None:
        foreign = {"type": "Mine", "status": "True"}
        first = after_run([foreign], ok=True, message="", stats={}, now="T1")
        second = after_run(first, ok=True, message="", stats={}, now="T2")
        assert {one.get("lastTransitionTime") for one in second} == {None, "T1"}
        assert second[0] == foreign
        third = after_run(second, ok=False, message="m", stats={}, now="T3")
        assert {one.get("lastTransitionTime") for one in third} == {None, "T3"}
        assert len(third) == 4
