"""What the harness does after each event of a job, and what it records."""

from __future__ import annotations

from typing import Any

from devtools.lab.soak.mix import Life, SoakJob, job
from devtools.lab.soak.progress import DELETE, RESUME, Progress
from devtools.testbed.jobs import read_kinds

KINDS = read_kinds()
SUSPENDED = {"conditions": [{"type": "Suspended", "status": "True"}]}


def of(life: Life, expires: bool = False) -> SoakJob:
    first = [kind.title for kind in KINDS].index("kubeflow.org/v1 MXJob")
    found = (job(KINDS, number, 10) for number in range(first, 3000, len(KINDS)))
    return next(one for one in found if one.life is life and one.expires is expires)


def begun(one: SoakJob) -> Progress:
    progress = Progress()
    progress.begin(one, 10.0)
    return progress


def state(text: str, **fields: Any) -> dict[str, Any]:
    return {"state": text, **fields}


def test_a_finished_job_is_deleted_once() -> None:
    one = of(Life.SUCCESS)
    progress = begun(one)
    assert progress.job_changed(one.name, state("Running"), 11.0) == ""
    assert progress.job_changed(one.name, state("Succeeded"), 12.0) == DELETE
    assert progress.job_changed(one.name, state("Succeeded"), 13.0) == ""


def test_the_operator_deletes_a_job_that_expires() -> None:
    one = of(Life.SUCCESS, expires=True)
    progress = begun(one)
    assert progress.job_changed(one.name, state("Succeeded"), 12.0) == ""
    assert progress.job_gone(one.name, state("Succeeded"), 12.5)
    assert progress.wrong == [] and progress.in_flight == []


def test_times_count_from_the_creation() -> None:
    one = of(Life.SUCCESS)
    progress = begun(one)
    progress.pod_appeared(one.name, 10.25)
    progress.pod_appeared(one.name, 10.75)
    progress.job_changed(one.name, state("Succeeded"), 12.0)
    progress.job_gone(one.name, state("Succeeded"), 20.0)
    (done,) = progress.done
    assert (done.order, done.first_pod, done.ended) == (0, 0.25, 2.0)


def test_a_suspended_job_is_resumed_and_its_times_count_from_there() -> None:
    one = of(Life.SUSPEND)
    progress = begun(one)
    assert progress.job_changed(one.name, SUSPENDED, 14.0) == RESUME
    assert progress.job_changed(one.name, SUSPENDED, 14.1) == ""
    progress.pod_appeared(one.name, 14.5)
    progress.job_gone(one.name, state("Succeeded"), 15.0)
    assert progress.done[0].first_pod == 0.5
    assert progress.wrong == []


def test_a_job_to_be_deleted_is_deleted_while_it_runs() -> None:
    one = of(Life.DELETE)
    progress = begun(one)
    assert progress.job_changed(one.name, state("Running", phase="Creating"), 11.0) == ""
    assert progress.job_changed(one.name, state("Running", phase="Running"), 12.0) == DELETE
    progress.job_gone(one.name, state("Running"), 13.0)
    assert progress.wrong == []
    assert progress.done[0].ended is None


def test_a_job_that_runs_apart_is_no_job_of_the_load() -> None:
    progress = Progress()
    progress.begin(of(Life.SUCCESS, expires=True), 10.0, apart=True)
    name = progress.in_flight[0]
    progress.pod_appeared(name, 10.25)
    progress.job_gone(name, state("Succeeded"), 11.0)
    assert ([one.first_pod for one in progress.apart], progress.done, dict(progress.lives)) == ([0.25], [], {})


def test_another_end_than_expected_is_recorded() -> None:
    one = of(Life.FAILURE)
    progress = begun(one)
    progress.job_gone(one.name, state("Succeeded"), 13.0)
    assert progress.wrong == [f"{one.name} (kubeflow.org/v1 MXJob, failure): Succeeded"]


def test_jobs_of_others_are_left_alone() -> None:
    progress = Progress()
    progress.pod_appeared("other", 1.0)
    assert progress.job_changed("other", state("Succeeded"), 1.0) == ""
    assert not progress.job_gone("other", {}, 1.0)
    assert progress.done == []


def test_it_waits_for_room() -> None:
    one = of(Life.SUCCESS)
    progress = begun(one)
    assert progress.wait_below(2, 0.0)
    assert not progress.wait_below(1, 0.01)
    progress.job_gone(one.name, state("Succeeded"), 11.0)
    assert progress.wait_below(1, 0.0)
