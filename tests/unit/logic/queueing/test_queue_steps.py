"""The records of queueing by themselves; `tests/unit/api/test_queueing.py` has whole reconciles."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.queueing import placement, pod_sets, steps, turn
from ansible_collections.dljob.operator.plugins.module_utils.logic.queueing.workload import (
    QuotaRequest,
    Workload,
    name_of,
    read,
    with_condition,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.conditions import NewCondition
from support.builders import PYTORCH, grouped, pytorchjob, stamp

REQUEST = QuotaRequest("team-a", "", "", None, ())


def condition(type_: str, status: str = "True", **more: str) -> dict[str, str]:
    return {"type": type_, "status": status, "lastTransitionTime": stamp(), **more}


def workload(*conditions: dict[str, str], **changes: Any) -> Workload:
    status = {"conditions": list(conditions), "admission": changes.pop("admission", None)}
    metadata = {"name": "w", "uid": "u", "resourceVersion": "1"}
    made = read({"metadata": metadata, "spec": {}, "status": status})
    return dataclasses.replace(made, **{"hash": REQUEST.hash, **changes})


ADMISSION = {"clusterQueue": "all", "podSetAssignments": [{"name": "master", "count": 1}]}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (workload(condition("Admitted"), admission=ADMISSION), True),
        (workload(condition("Admitted")), False),
        (workload(condition("Admitted", "False"), admission=ADMISSION), False),
        (workload(condition("Admitted"), condition("Evicted"), admission=ADMISSION), False),
        (workload(condition("Admitted"), condition("Evicted", "False"), admission=ADMISSION), True),
        (workload(condition("Admitted"), admission=ADMISSION, active=False), False),
        (workload(condition("QuotaReserved"), admission=ADMISSION), False),
    ],
)
def test_when_a_job_may_have_pods(found: Workload, expected: bool) -> None:
    assert found.is_admitted is expected


def seen(*conditions: str, **changes: Any) -> steps.Seen:
    status = {"conditions": [{"type": type_, "status": "True"} for type_ in conditions], **changes.pop("status", {})}
    return dataclasses.replace(steps.Seen(REQUEST, status, suspend=False, has_deleted=False), **changes)


EVICTED = workload(condition("Evicted", reason="Preempted"), condition("QuotaReserved"), admission=ADMISSION)


@pytest.mark.parametrize(
    ("job", "found", "expected"),
    [
        (seen("Suspended"), EVICTED, steps.WriteStatus),
        (seen("Running"), EVICTED, None),
        (seen("Suspended", has_deleted=True), EVICTED, None),
        (seen("Suspended"), workload(condition("Evicted"), condition("QuotaReserved", "False")), None),
        (seen("Suspended"), workload(), None),
        (seen("Suspended"), None, steps.Create),
        (seen("Suspended", suspend=True), None, None),
        (seen("Suspended", asked=None), None, None),
        (seen(status={"state": "Failed"}), None, None),
        (seen(status={"state": "Failed"}), EVICTED, steps.WriteStatus),
        (seen(status={"state": "Failed", "phase": "CleanUp"}), EVICTED, None),
        (seen(status={"state": "Failed"}), workload(condition("Finished")), None),
        (seen("Suspended"), workload(deleting=True), None),
        (seen("Suspended"), workload(hash="older"), steps.Replace),
        (seen("Suspended"), workload(condition("QuotaReserved"), hash="older"), steps.Delete),
        (seen("Running"), workload(condition("QuotaReserved"), hash="older"), None),
        (seen("Suspended"), workload(priority_class="gold"), steps.Prioritize),
        (seen("Suspended"), workload(condition("Admitted"), admission=ADMISSION), steps.Place),
        (seen("Suspended", suspend=True), workload(), steps.Activate),
        (seen("Suspended"), workload(active=False, suspended=True), steps.Activate),
        (seen("Suspended"), workload(active=False), None),
    ],
)
def test_the_next_step(job: steps.Seen, found: Workload | None, expected: type | None) -> None:
    step = steps.next_step(job, found, stamp())
    assert (None if step is None else type(step)) is expected


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    old = [condition("PodsReady"), condition("Admitted")]
    same = with_condition(old, NewCondition("PodsReady", "Recovered", ""), stamp(9))
    assert [one["lastTransitionTime"] for one in same if one["type"] == "PodsReady"] == [stamp()]
    other = with_condition(old, NewCondition("PodsReady", "WaitForRecovery", "", "False"), stamp(9))
    assert [one["lastTransitionTime"] for one in other if one["type"] == "PodsReady"] == [stamp(9)]
    assert [one["type"] for one in other] == ["Admitted", "PodsReady"]


def test_another_domain_for_a_failed_node_is_no_other_admission() -> None:
    def with_domain(domain: str) -> Workload:
        sets = [{"name": "master", "count": 1, "topologyAssignment": {"levels": [domain]}}]
        return workload(condition("Admitted"), admission={"clusterQueue": "all", "podSetAssignments": sets})

    placed = dataclasses.replace(with_domain("a"), placement=placement.compute(with_domain("a"), {}))
    assert placement.stored(placed) is not None
    assert placement.stored(dataclasses.replace(with_domain("b"), placement=placed.placement)) is not None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"admission": "older", "podSets": {}}'])
def test_a_placement_of_another_admission_counts_for_nothing(text: str) -> None:
    assert placement.stored(workload(condition("Admitted"), admission=ADMISSION, placement=text)) is None


def test_only_a_pod_set_whose_ranks_begin_with_0_names_the_label_of_the_ranks() -> None:
    job = grouped(pytorchjob(worker=3), "Worker", big=(2, {}))
    replica = job["spec"]["pytorchReplicaSpecs"]["Worker"]
    asks = {"kueue.x-k8s.io/podset-preferred-topology": "rack", "kueue.x-k8s.io/podset-slice-size": "2"}
    for template in (replica["template"], replica["groups"][0]["template"]):
        template["metadata"] = {**template.get("metadata", {}), "annotations": asks}
    found = {one["name"]: one["topologyRequest"] for one in pod_sets.build(parse_job(job, PYTORCH))}
    own = {"preferred": "rack", "podSetSliceSize": 2}
    assert found == {"worker-big": {**own, "podIndexLabel": "dljob.operator/replica-index"}, "worker": own}


def test_a_template_without_replicas_asks_for_nothing() -> None:
    job = parse_job(grouped(pytorchjob(worker=2), "Worker", all=(2, {})), PYTORCH)
    assert [one["name"] for one in pod_sets.build(job)] == ["worker-all"]


@pytest.mark.parametrize(
    ("labels", "cached", "expected"),
    [
        ({"kueue.x-k8s.io/queue-name": "a"}, False, True),
        ({}, False, False),
        ({}, True, True),
        ({"kueue.x-k8s.io/queue-name": ""}, False, False),
        ({"kueue.x-k8s.io/queue-name": "a", "kueue.x-k8s.io/multikueue-origin": "b"}, True, False),
    ],
)
def test_for_which_jobs_it_looks(labels: dict[str, str], cached: bool, expected: bool) -> None:
    assert turn.may_concern({"metadata": {"labels": labels}}, cached=cached) is expected


@pytest.mark.parametrize(
    ("queue", "found", "expected"),
    [
        ("a", {}, True),
        ("", {}, False),
        ("a", {"Created": "True"}, False),
        ("a", {"Created": "True", "Suspended": "True"}, True),
        ("a", {"Created": "True", "Suspended": "False"}, True),
    ],
)
def test_which_jobs_without_a_workload_queue(queue: str, found: dict[str, str], expected: bool) -> None:
    status = {"conditions": [{"type": type_, "status": value} for type_, value in found.items()]}
    job = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": queue}}, "status": status}
    assert turn.begins(job) is expected


@pytest.mark.parametrize("name", ["digits", "a" * 253, "x." * 100 + "y"])
def test_the_name_fits_a_label_and_differs_by_job(name: str) -> None:
    def of(uid: str) -> str:
        return name_of(dataclasses.replace(parse_job(pytorchjob(master=1), PYTORCH), name=name, uid=uid))

    assert len(of("1")) <= 63
    assert of("1") != of("2")
