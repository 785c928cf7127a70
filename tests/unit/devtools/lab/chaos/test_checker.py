"""What must hold once a round has settled."""

from __future__ import annotations

from typing import Any

import pytest
from devtools.lab.chaos import checker
from devtools.lab.chaos.history import History

JOB = "job-uid-1"


def job(state: str = "Succeeded", name: str = "j", retries: Any = None, attempt: int = 0, **policy: Any) -> Any:
    status = {"state": state} | ({} if retries is None else {"retries": retries})
    status |= {"attempt": attempt} if attempt else {}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MXJob",
        "metadata": {"uid": JOB, "name": name},
        "spec": {"runPolicy": policy},
        "status": status,
    }


def pod(uid: str, attempt: int, phase: str) -> Any:
    labels = {
        "dljob.operator/job-uid": JOB,
        "dljob.operator/replica-type": "worker",
        "dljob.operator/replica-index": "0",
        "dljob.operator/attempt": str(attempt),
    }
    return {"metadata": {"uid": uid, "name": uid, "labels": labels}, "status": {"phase": phase}}


def batch_job(condition: str = "", *, uid: str = JOB, deleted: bool = False) -> Any:
    return {
        "metadata": {
            "name": "j-launcher",
            "uid": "batch-uid",
            "labels": {"dljob.operator/job-uid": uid, "dljob.operator/replica-type": "worker"},
            **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {}),
        },
        "status": {"conditions": [{"type": condition, "status": "True"}] if condition else []},
    }


def history(manifest: Any, *pods: tuple[int, str]) -> History:
    made = History()
    made.job_event("ADDED", manifest, 0.0)
    for number, (attempt, phase) in enumerate(pods):
        made.pod_event("ADDED", pod(f"p{number}", attempt, phase), 0.0)
        if phase == "Failed":
            made.pod_event("DELETED", pod(f"p{number}", attempt, phase), 0.0)
    return made


def rules(findings: Any) -> list[str]:
    return [rule for rule, _ in findings]


@pytest.mark.parametrize(("state", "lost"), [("Running", 1), ("", 1), ("Succeeded", 0), ("Failed", 0)])
def test_every_job_ends(state: str, lost: int) -> None:
    assert len([*checker.lost_jobs([job(state)])]) == lost


@pytest.mark.parametrize(
    ("seen", "deleted", "listed", "found"),
    [
        (job(), False, True, []),
        (job(), False, False, ["a job vanished"]),
        (job(), True, False, []),
        (None, False, False, ["a job vanished"]),
        (None, True, False, []),
        (job(ttlSecondsAfterFinished=0), False, False, []),
        (job("Running", ttlSecondsAfterFinished=0), False, False, ["a job vanished"]),
    ],
    ids=["listed", "seen", "deleted", "created", "created, deleted", "expired", "expires, but has not ended"],
)
def test_no_job_vanishes_that_nothing_has_deleted(seen: Any, deleted: bool, listed: bool, found: list[str]) -> None:
    made = History()
    made.created.add(JOB)
    if seen:
        made.job_event("ADDED", seen, 0.0)
        made.job_event("DELETED", seen, 1.0)
    if deleted:
        made.deleted.add(JOB)
    assert rules(checker.vanished_jobs([job()] if listed else [], made)) == found


@pytest.mark.parametrize(("state", "wrong"), [("Succeeded", 0), ("Failed", 1), ("Running", 0)])
def test_a_job_ends_as_its_pods_imply(state: str, wrong: int) -> None:
    assert len([*checker.wrong_outcomes([job(state)], {"j": "Succeeded"})]) == wrong


@pytest.mark.parametrize(
    ("retries", "pods", "found"),
    [
        ({"worker-0": 1}, [(0, "Failed"), (1, "Succeeded")], []),
        ({"worker-0": 1}, [(0, "Failed"), (0, "Failed"), (1, "Succeeded")], []),
        ({"worker-0": 2}, [(0, "Failed"), (1, "Succeeded")], ["a failure counted twice"]),
        ({"worker-0": 1}, [(0, "Succeeded")], ["a failure counted twice"]),
        ({}, [(0, "Failed"), (1, "Succeeded")], ["an attempt that was not counted"]),
        (None, [(0, "Failed")], []),
    ],
)
def test_each_failure_counts_once(retries: Any, pods: list[tuple[int, str]], found: list[str]) -> None:
    assert rules(checker.wrong_attempts(history(job(retries=retries), *pods))) == found


@pytest.mark.parametrize(
    ("retries", "scope", "condition", "found"),
    [
        ({}, "Replica", "Complete", []),
        ({"worker-0": 1}, "Replica", "Complete", ["a failure counted twice"]),
        ({"worker-0": 1}, "Replica", "FailureTarget", ["a failure counted twice"]),
        ({"worker-0": 1}, "Replica", "Failed", []),
        ({"worker-0": 2}, "Replica", "Failed", ["a failure counted twice"]),
        ({"job": 1}, "Job", "Complete", ["a failure counted twice"]),
        ({"job": 1}, "Job", "Failed", []),
    ],
)
def test_a_batch_job_counts_the_failures_of_its_pods(
    retries: Any, scope: str, condition: str, found: list[str]
) -> None:
    """For the operator its replica fails once, when the batch Job does."""
    made = History()
    made.batch_job_event(batch_job(condition))
    made.job_event("ADDED", job(retries=retries, restartScope=scope), 0.0)
    for uid, phase in (("p0", "Failed"), ("p1", "Failed"), ("p2", "Succeeded")):
        one = pod(uid, 0, phase)
        one["metadata"]["ownerReferences"] = [{"kind": "Job", "controller": True}]
        made.pod_event("ADDED", one, 0.0)
    assert rules(checker.wrong_attempts(made)) == found


def test_an_edit_starts_the_counts_again() -> None:
    made = history(job(retries={"worker-0": 2}), (0, "Failed"))
    made.edited.add(JOB)
    assert rules(checker.wrong_attempts(made)) == []


@pytest.mark.parametrize(
    ("count", "attempt", "taken", "found"),
    [
        (1, 1, False, []),
        (2, 2, False, ["a failure counted twice"]),
        (0, 1, False, ["an attempt that was not counted"]),
        (0, 1, True, []),
        (1, 0, False, ["an attempt that was not counted"]),
        (1, 0, True, ["an attempt that was not counted"]),
        (1, 1, True, []),
    ],
)
def test_a_job_that_restarts_as_a_whole_counts_its_attempts(
    count: int, attempt: int, taken: bool, found: list[str]
) -> None:
    """One of which a pod was taken away begins an attempt without a failure."""
    made = history(job(retries={"job": count}, attempt=attempt, restartScope="Job"), (0, "Failed"), (1, "Succeeded"))
    if taken:
        made.disturbed.add(JOB)
    assert rules(checker.wrong_attempts(made)) == found


@pytest.mark.parametrize(
    ("policy", "phase", "left"), [("Running", "Running", 1), ("Running", "Succeeded", 0), ("None", "Running", 0)]
)
def test_no_pod_runs_for_an_ended_job(policy: str, phase: str, left: int) -> None:
    manifest = job(cleanPodPolicy=policy)
    assert len([*checker.left_running([manifest], history(manifest, (0, phase)))]) == left


@pytest.mark.parametrize(
    ("state", "policy", "there", "left"),
    [
        ("Succeeded", "Running", batch_job("Complete"), 0),
        ("Failed", "Running", batch_job("Failed"), 0),
        ("Failed", "Running", batch_job(), 1),
        ("Failed", "Running", batch_job("FailureTarget"), 1),
        ("Failed", "Running", batch_job(deleted=True), 0),
        ("Failed", "Running", batch_job(uid="other"), 0),
        ("Failed", "None", batch_job(), 0),
        ("Succeeded", "All", batch_job("Complete"), 1),
        ("Running", "All", batch_job(), 0),
    ],
)
def test_no_batch_job_creates_pods_for_an_ended_job(state: str, policy: str, there: Any, left: int) -> None:
    assert len([*checker.left_batch_jobs([job(state, cleanPodPolicy=policy)], [there])]) == left


LABELS = pod("p", 0, "Running")["metadata"]["labels"]


def controlled(uid: str, kind: str = "MXJob", labels: Any = None) -> Any:
    """An object that a job or a batch Job controls, without labels."""
    reference = {"apiVersion": f"{'batch' if kind == 'Job' else 'kubeflow.org'}/v1", "kind": kind}
    metadata = {"uid": "p", "name": "p", "labels": labels or {}}
    return {"metadata": {**metadata, "ownerReferences": [{**reference, "uid": uid, "controller": True}]}}


@pytest.mark.parametrize(
    ("one", "found"),
    [
        (controlled(JOB, labels=LABELS), []),
        (controlled(JOB), ["a pod without its labels"]),
        (controlled(JOB, labels={"dljob.operator/job-uid": JOB}), ["a pod without its labels"]),
        (controlled("unknown"), []),
        (controlled("batch-uid", "Job", LABELS), []),
        (controlled("batch-uid", "Job"), ["a pod without its labels"]),
        (controlled("other", labels=LABELS), ["a pod without its labels"]),
    ],
    ids=["labelled", "none", "some", "of no job", "of a batch Job", "of a batch Job, none", "those of another job"],
)
def test_each_pod_has_the_labels_of_its_job(one: Any, found: list[str]) -> None:
    made = History()
    made.pod_event("ADDED", one, 0.0)
    made.batch_job_event(batch_job())
    other = job(name="k")
    for manifest in (job(), {**other, "metadata": {**other["metadata"], "uid": "other"}}):
        made.job_event("ADDED", manifest, 0.0)
    assert rules(checker.wrong_labels(made)) == found


def test_an_object_belongs_to_the_job_that_controls_it() -> None:
    objects = [controlled(JOB), controlled("batch-uid", "Job")]
    assert rules(checker.orphans(objects, [])) == ["an orphan"]
    assert rules(checker.orphans(objects, [job()])) == []
    launcher = {**batch_job(), **controlled(JOB)}
    assert len([*checker.left_batch_jobs([job(cleanPodPolicy="All")], [launcher])]) == 1


def test_an_orphan_is_an_object_whose_job_is_gone() -> None:
    owned = pod("p", 0, "Running")
    foreign = {"metadata": {"name": "kube-root-ca.crt", "uid": "u"}}
    assert rules(checker.orphans([owned, foreign], [])) == ["an orphan"]
    assert rules(checker.orphans([owned, foreign], [job()])) == []


def test_writes_are_reported_with_their_number() -> None:
    assert [*checker.writes_at_rest(["PUT a", "PUT a"])] == [("a write for a job at rest", "2 times PUT a")]
    assert [*checker.writes_at_rest([])] == []


METRICS = """\
# TYPE dljob_jobs gauge
dljob_jobs{kind="kubeflow.org/v1 MXJob",namespace="n",state="Succeeded"} 2.0
dljob_jobs{kind="kubeflow.org/v1 MXJob",namespace="other",state="Running"} 5.0
dljob_queue_jobs 0.0
"""


@pytest.mark.parametrize(("present", "stale"), [(2, 0), (1, 1), (3, 1)])
def test_the_cache_has_as_many_jobs_of_each_kind_and_state_as_the_api_server(present: int, stale: int) -> None:
    assert len([*checker.wrong_cache(METRICS, "n", [job()] * present)]) == stale
