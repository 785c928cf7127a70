"""The jobs of a soak run, and how their pods end."""

from __future__ import annotations

import itertools

import pytest
from devtools.lab.soak.mix import ATTEMPT, CYCLE, INDEX, PERMANENT, RETRYABLE, TYPE, Life, fitting, job, succeeding
from devtools.testbed.jobs import read_kinds

KINDS = fitting(read_kinds())
JOBS = [job(KINDS, number, 10) for number in range(len(KINDS) * len(CYCLE) * 2)]


def labels(type_: str, index: str = "0", attempt: str = "0") -> dict[str, str]:
    return {TYPE: type_, INDEX: index, ATTEMPT: attempt}


def test_each_kind_gets_each_life_that_it_can_have() -> None:
    lives = {kind.title: {one.life for one in JOBS if one.kind == kind} for kind in KINDS}
    assert lives.pop("kubeflow.org/v1alpha1 Caffe2Job") == set(Life) - {Life.RETRY}
    assert lives.pop("mpba.fbk.eu/v1 MXJob") == set(Life) - {Life.SUSPEND}
    assert all(found == set(Life) for found in lives.values())


def test_kinds_with_a_batch_job_are_left_out() -> None:
    left_out = {kind.title for kind in read_kinds()} - {kind.title for kind in KINDS}
    assert left_out == {"kubeflow.org/v2beta1 MPIJob"}


def test_half_of_the_jobs_expire_where_the_kind_can_say_so() -> None:
    by_kind = {kind.title: {one.expires for one in JOBS if one.kind == kind} for kind in KINDS}
    assert by_kind.pop("mpba.fbk.eu/v1 MXJob") == {False}
    assert all(found == {True, False} for found in by_kind.values())
    for one in JOBS:
        policy = one.manifest["spec"].get("runPolicy", {}) if isinstance(one.manifest["spec"], dict) else {}
        assert (policy.get("ttlSecondsAfterFinished") == 0) is one.expires
        assert bool(policy.get("suspend")) is (one.life is Life.SUSPEND)


def test_jobs_that_run_alone_are_of_the_same_kinds_each_time() -> None:
    early, late = (list(itertools.islice(succeeding(KINDS, number, 10), 300)) for number in (20_000, 40_001))
    assert [one.kind for one in early] == [one.kind for one in late]
    assert {one.life for one in (*early, *late)} == {Life.SUCCESS}
    names = {one.name for one in (*early, *late)}
    assert len(names) == 600 and not names & {job(KINDS, number, 10).name for number in range(20_000)}


def of(life: Life) -> int:
    """The number of an MXJob (v1) with this life."""
    first = [kind.title for kind in KINDS].index("kubeflow.org/v1 MXJob")
    return next(n for n in range(first, 2000, len(KINDS)) if job(KINDS, n, 10).life is life)


ENDS = [
    (Life.SUCCESS, labels("Scheduler"), 0, "Succeeded"),
    (Life.SUSPEND, labels("Scheduler"), 0, "Succeeded"),
    (Life.RETRY, labels("Scheduler"), RETRYABLE, "Succeeded"),
    (Life.RETRY, labels("Scheduler", attempt="1"), 0, "Succeeded"),
    (Life.RETRY, labels("Worker"), 0, "Succeeded"),
    (Life.FAILURE, labels("Scheduler"), PERMANENT, "Failed"),
    (Life.FAILURE, labels("Worker"), 0, "Failed"),
    (Life.DELETE, labels("Scheduler"), None, ""),
]


@pytest.mark.parametrize(("life", "of_pod", "code", "expected"), ENDS)
def test_the_exit_code_of_a_pod(life: Life, of_pod: dict[str, str], code: int | None, expected: str) -> None:
    one = job(KINDS, of(life), 10)
    assert one.kind.title == "kubeflow.org/v1 MXJob"
    assert one.exit_code(of_pod) == code
    assert one.expected == expected


@pytest.mark.parametrize("count", range(1, 12))
def test_any_number_of_kinds_will_do(count: int) -> None:
    """A cycle with a divisor in common with the number of kinds would give a kind the same few lives again and again."""
    mxjob = [kind for kind in KINDS if kind.title == "kubeflow.org/v1 MXJob"]
    made = [job(mxjob * count, number, 10) for number in range(count * len(CYCLE) * 2)]
    for position in range(count):
        assert {(one.life, one.expires) for one in made[position::count]} == {
            (life, e) for life in Life for e in (True, False)
        }
