"""The metrics of what jobs use, from the accounts in their statuses."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry

from dljob_operator.engine.cache.predicates import Change
from dljob_operator.engine.serving.usage_metrics import UsageMetrics

KIND = "kubeflow.org/v1 PyTorchJob"
GPU = "nvidia.com/gpu"


def job(gpu: float = 0, running: float = 0, failures: int = 0, held: float = 0, **more: Any) -> dict[str, Any]:
    usage = {
        "resourceSeconds": {GPU: gpu, "cpu": gpu / 2},
        "seconds": {"running": running},
        "interruptions": [
            {"cause": "Failure", "count": failures, "seconds": 10 * failures, "resourceSeconds": {GPU: 80 * failures}}
        ],
        "held": {GPU: held},
        **more,
    }
    return {"metadata": {"uid": "1"}, "status": {"usage": usage}}


def values(*changes: Change, keys: tuple[str, ...] = ("1",)) -> dict[tuple[str, str], float]:
    """By the name of the metric and its last label."""
    registry = CollectorRegistry()
    metrics = UsageMetrics(registry)
    for number, change in enumerate(changes):
        metrics.job_changed("lab", (KIND, keys[number % len(keys)]), change)
    found = {}
    for sample in (sample for family in registry.collect() for sample in family.samples):
        if not sample.name.endswith("_created"):
            labels = dict(sample.labels)
            assert (labels.pop("namespace"), labels.pop("kind")) == ("lab", KIND)
            found[sample.name.removeprefix("dljob_job_"), " ".join(labels.values())] = sample.value
    return found


def test_an_account_that_grows() -> None:
    assert values(Change(job(100, 50, 1), job(160, 90, 3, held=8))) == {
        ("resource_seconds_total", GPU): 60,
        ("resource_seconds_total", "cpu"): 30,
        ("phase_seconds_total", "running"): 40,
        ("interruptions_total", "Failure"): 2,
        ("interruption_seconds_total", "Failure"): 20,
        ("interruption_resource_seconds_total", f"Failure {GPU}"): 160,
        ("held_resources", GPU): 8,
    }


def test_what_there_was_before_this_process_does_not_count() -> None:
    assert values(Change(None, job(100, 50, 1))) == {("held_resources", GPU): 0}


def test_a_correction_takes_nothing_away() -> None:
    assert ("resource_seconds_total", GPU) not in values(Change(job(100), job(90)))


def test_what_jobs_hold() -> None:
    both = Change(None, job(held=8)), Change(None, job(held=2))
    assert values(*both, keys=("1", "2"))["held_resources", GPU] == 10
    assert values(*both)["held_resources", GPU] == 2
    assert values(*both, Change(job(held=2), None)) == {}


def test_nonsense_in_a_status_counts_for_nothing() -> None:
    odd: list[Any] = [
        {"status": "x"}, {"status": {"usage": []}},
        job(resourceSeconds={"cpu": "9", "memory": float("nan")}, seconds=[], interruptions={"cause": 1}, held=None),
        job(interruptions=[1, {"cause": "Failure", "count": -1}]),
    ]  # fmt: skip
    for one in odd:
        assert not any(values(Change({"metadata": {}}, {"metadata": {}, **one})).values())


def test_there_are_not_more_series_than_a_cluster_has_resources() -> None:
    """A user who may write a status could invent others."""
    many = job(resourceSeconds={f"x/{number}": 1 for number in range(1000)})
    found = values(Change(job(), many))
    assert len(found) < 100
    assert found["resource_seconds_total", "other"] > 900
