"""How long jobs take to start and to end: each job once, at credible times, in this process."""

from __future__ import annotations

import datetime
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from dljob_operator.engine.cache.predicates import Change
from dljob_operator.engine.serving.job_times import JobTimes
from dljob_operator.engine.serving.metrics import Metrics

KIND = "kubeflow.org/v1 MXJob"
BEGAN = datetime.datetime(2026, 5, 4, 12, 0, 0, 900_000, tzinfo=datetime.UTC)
NOW = BEGAN + datetime.timedelta(hours=10)
CREATED, BEFORE = "2026-05-04T12:00:00Z", "2026-05-04T11:00:00Z"
FIRST_POD, RUNNING, SUCCEEDED, FAILED = "first_pod", "running", "duration succeeded", "duration failed"


def at(minutes: int) -> str:
    """A time after the creation."""
    return (BEGAN + datetime.timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(type_: str, minutes: int, status: str = "True") -> dict[str, str]:
    return {"type": type_, "status": status, "lastTransitionTime": at(minutes)}


def job(created: str | None = CREATED, **status: Any) -> dict[str, Any]:
    return {"metadata": {"namespace": "lab", "uid": "a", "creationTimestamp": created}, "status": status}


NEW = job()
STARTED = job(startTime=at(2))
ALL_RUN = job(startTime=at(2), conditions=[condition("Created", 0), condition("Running", 3)])
RESTARTS = job(startTime=at(2), conditions=[condition("Restarting", 60)])
RUNS_AGAIN = job(startTime=at(2), conditions=[condition("Running", 61)])
SUSPENDED = job(startTime=at(2), conditions=[condition("Running", 80, "False"), condition("Suspended", 80)])
RESUMED = job(startTime=at(90), conditions=[condition("Suspended", 90, "False"), condition("Running", 91)])
DONE = job(startTime=at(2), completionTime=at(122), state="Succeeded", conditions=[condition("Succeeded", 122)])
LOST = job(startTime=at(2), completionTime=at(32), state="Failed", conditions=[condition("Failed", 32)])
DONE_ELSEWHERE = job(startTime=at(2), completionTime=at(12), conditions=[condition("Succeeded", 12)])
"""training-operator writes no state."""


def changes(*jobs: dict[str, Any] | None) -> list[Change]:
    """The first of the jobs is there before the first change."""
    return [Change(old, new) for old, new in itertools.pairwise(jobs)]


def sums(registry: CollectorRegistry) -> dict[str, tuple[float, float]]:
    """The numbers of jobs and the sums of their minutes, by the name and the result."""
    found: dict[str, dict[str, float]] = {}
    for sample in (sample for family in registry.collect() for sample in family.samples):
        name, _, what = sample.name.removeprefix("dljob_job_").partition("_seconds_")
        if what in ("count", "sum") and name in (FIRST_POD, RUNNING, "duration"):
            assert sample.labels["kind"] == KIND
            found.setdefault(f"{name} {sample.labels.get('result', '')}".strip(), {})[what] = sample.value
    return {name: (value["count"], value["sum"] / 60) for name, value in found.items()}


def counted(*given: Change) -> dict[str, tuple[float, float]]:
    times = [BEGAN]
    metrics = Metrics(lambda: times[-1])
    times.append(NOW)
    for one in given:
        metrics.job_changed(KIND, one)
    return sums(metrics.registry)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (changes(None, NEW), {}),
        (changes(None, NEW, STARTED), {FIRST_POD: (1, 2)}),
        (changes(None, NEW, STARTED, ALL_RUN), {FIRST_POD: (1, 2), RUNNING: (1, 3)}),
        (changes(None, NEW, ALL_RUN, DONE), {FIRST_POD: (1, 2), RUNNING: (1, 3), SUCCEEDED: (1, 120)}),
        (changes(None, NEW, STARTED, LOST), {FIRST_POD: (1, 2), FAILED: (1, 30)}),
        (changes(None, NEW, STARTED, DONE_ELSEWHERE), {FIRST_POD: (1, 2), SUCCEEDED: (1, 10)}),
        # over before it was seen at all
        (changes(None, LOST), {FIRST_POD: (1, 2), FAILED: (1, 30)}),
        # each job once
        (changes(None, STARTED, ALL_RUN, RESTARTS, RUNS_AGAIN), {FIRST_POD: (1, 2), RUNNING: (1, 3)}),
        (changes(None, STARTED, RESTARTS, RUNS_AGAIN), {FIRST_POD: (1, 2), RUNNING: (1, 61)}),
        (changes(None, ALL_RUN, SUSPENDED, RESUMED), {FIRST_POD: (1, 2), RUNNING: (1, 3)}),
        (changes(None, NEW, job(conditions=[condition("Suspended", 0)]), RESUMED), {FIRST_POD: (1, 90), RUNNING: (1, 91)}),
        (changes(None, LOST, job(attempt=1), DONE), {FIRST_POD: (1, 2), FAILED: (1, 30)}),
        # the operator has restarted
        (changes(None, job(BEFORE)), {}),
        (changes(None, job(BEFORE), job(BEFORE, startTime=at(2))), {FIRST_POD: (1, 62)}),
        ([Change(None, job(BEFORE, **ALL_RUN["status"])), Change(ALL_RUN, RESTARTS), Change(RESTARTS, RUNS_AGAIN)], {}),
        ([Change(None, job(BEFORE, **RESTARTS["status"])), Change(RESTARTS, RUNS_AGAIN)], {}),
        ([Change(None, job(BEFORE, **SUSPENDED["status"])), Change(SUSPENDED, RESUMED)], {}),
        ([Change(None, job(BEFORE, **ALL_RUN["status"])), Change(ALL_RUN, DONE)], {SUCCEEDED: (1, 120)}),
        ([Change(None, job(BEFORE, **DONE["status"])), Change(DONE, DONE)], {}),
        # a change of a job that no list had
        ([Change(STARTED, ALL_RUN)], {RUNNING: (1, 3)}),
        ([Change(DONE, DONE)], {}),
        # another job of the UID's place
        ([*changes(None, STARTED), Change(STARTED, None), Change(None, STARTED)], {FIRST_POD: (2, 4)}),
    ],
)  # fmt: skip
def test_what_a_job_has_reached(given: list[Change], expected: dict[str, tuple[float, float]]) -> None:
    assert counted(*given) == expected


@pytest.mark.parametrize(
    "status",
    [
        {"startTime": BEFORE},
        {"startTime": at(601)},
        {"startTime": "soon"},
        {"startTime": "2026-05-04"},
        {"startTime": 1777896000},
        {"conditions": [{**condition("Running", 1), "lastTransitionTime": None}]},
        {"conditions": [condition("Running", 601)]},
        {"conditions": [condition("Running", -5)]},
        {"conditions": [condition("Running", 1, "Unknown")]},
        {"conditions": {"type": "Running", "status": "True"}},
        {"state": "Succeeded"},
        {"state": "Succeeded", "completionTime": at(5)},
        {"state": ["Failed"], "conditions": ["Failed", 1]},
    ],
)
def test_times_that_cannot_be_count_for_nothing(status: dict[str, Any]) -> None:
    assert counted(*changes(None, NEW, job(**status))) == {}


def test_an_end_that_cannot_be_counts_for_nothing() -> None:
    for ended in (at(1), at(601), "later", None):
        wrong = job(startTime=at(2), completionTime=ended, state="Failed")
        assert counted(*changes(None, NEW, wrong)) == {FIRST_POD: (1, 2)}
        assert counted(*changes(None, NEW, wrong, LOST)) == {FIRST_POD: (1, 2), FAILED: (1, 30)}


def test_without_a_creation_there_is_no_time() -> None:
    for created in (None, ""):
        done = job(created, **DONE["status"])
        assert counted(*changes(job(created), done)) == {}


def test_a_standby_that_takes_over_counts_no_job_that_its_leader_has_counted() -> None:
    times = [BEGAN, BEGAN + datetime.timedelta(minutes=10), NOW]
    metrics = Metrics(lambda: times[0])
    times.pop(0)
    metrics.watch(lambda: 0)
    times.pop(0)
    metrics.job_changed(KIND, Change(None, DONE))
    assert sums(metrics.registry) == {}


def test_the_buckets_reach_from_a_second_to_a_week() -> None:
    registry = CollectorRegistry()
    times = JobTimes(registry)
    now = NOW + datetime.timedelta(days=30)
    for number, seconds in enumerate((0, 3, 3600, 8 * 24 * 3600)):
        began = (BEGAN + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
        times.job_changed((KIND, str(number)), Change(None, job(startTime=began)), now, is_new=True)
    found = {
        float(sample.labels["le"]): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "dljob_job_first_pod_seconds_bucket"
    }
    assert len(found) == 13
    assert (min(found), found[1], found[5], found[3600], found[604800], found[float("inf")]) == (1, 1, 2, 3, 3, 4)


_TIMES = st.sampled_from([BEFORE, CREATED, at(5), at(60), at(601), "soon", "0001-01-01T00:00:00+23:59"]) | st.text(
    max_size=8
)
_ODD = st.none() | st.booleans() | st.integers() | st.floats() | _TIMES
_CONDITIONS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["Created", "Running", "Restarting", "Succeeded", "Failed"]) | _ODD,
            "status": st.sampled_from(["True", "False"]) | _ODD,
            "lastTransitionTime": _ODD,
        },
    )
    | _ODD
)
_STATUSES = st.fixed_dictionaries(
    {},
    optional={
        "startTime": _ODD,
        "completionTime": _ODD,
        "state": st.sampled_from(["Running", "Succeeded", "Failed"]) | _ODD,
        "conditions": _CONDITIONS | _ODD,
    },
)
_JOBS = st.builds(lambda status: {**NEW, "status": status}, _STATUSES | _ODD)


@given(st.lists(_JOBS, min_size=1, max_size=6))
def test_whatever_a_tenant_writes_a_job_counts_at_most_once_and_within_its_life(jobs: list[dict[str, Any]]) -> None:
    found = counted(*changes(None, *jobs))
    assert all(count == 1 and 0 <= minutes <= 600 for count, minutes in found.values())
    assert not {SUCCEEDED, FAILED} <= set(found)
