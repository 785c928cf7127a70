"""Why a pod does not start, where only its Events say so."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.startup_events import (
    LONGEST_INTERVAL,
    NOTICED,
    cause,
    explained,
    next_check,
    to_read,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import BatchJobRef, Observed
from support.builders import Pod, at, mxjob, observed, pod_of, stamp

JOB = mxjob("digits").v1().workers(6).job()
WORKER_0 = "digits-worker-0"
SECRET = 'MountVolume.SetUp failed for volume "data" : secret "nope" not found'
SUMMARY = (
    "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process: timed out"
)
SANDBOX = 'Failed to create pod sandbox: rpc error: code = Unknown desc = failed to set up sandbox "{}": no network'
LONG_NAME = (
    "Failed to create pod sandbox: failed to construct FQDN from pod hostname and cluster domain, FQDN a.b is too long "
    "(64 characters is the max, 70 characters requested)"
)


def unstarted(index: int = 0, type_: str = "worker", job: DLJob = JOB) -> Pod:
    """A pod that is scheduled, and whose container is being created."""
    made = pod_of(job, type_, index).waiting("ContainerCreating")
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp()}
    made = made.change(lambda p: p["status"].update(conditions=[scheduled]))
    return made.change(lambda p: p["spec"].update(nodeName="n1"))


def seen(*pods: Pod, job: DLJob = JOB) -> Observed:
    return observed(job, pods, services=False)


def event(
    reason: str = "FailedMount", message: str = SECRET, last: float = 0, type_: str = "Warning", **more: Any
) -> Any:
    return {"type": type_, "reason": reason, "message": message, "lastTimestamp": stamp(last), **more}


def normal(reason: str, last: float) -> Any:
    return event(reason, "", last, "Normal")


# --- which pods


def set_state(**state: Any) -> Any:
    return lambda p: p["status"]["containerStatuses"][0].update(state=state)


def with_init(**state: Any) -> Any:
    return lambda p: p["status"].update(initContainerStatuses=[{"name": "copy", "state": state}])


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(unstarted(), True, id="its container is being created"),
        pytest.param(
            unstarted().change(lambda p: p["status"].pop("containerStatuses")), True, id="no word of its node"
        ),
        pytest.param(unstarted().change(set_state(waiting={"reason": "PodInitializing"})), True, id="before its init"),
        pytest.param(unstarted().change(lambda p: p["spec"].pop("nodeName")), False, id="no node"),
        pytest.param(unstarted().change(set_state(waiting={"reason": "ErrImagePull"})), False, id="another reason"),
        pytest.param(unstarted().change(with_init(running={})), False, id="an init container runs"),
        pytest.param(
            unstarted().change(with_init(waiting={"reason": "CrashLoopBackOff"})), False, id="an init container fails"
        ),
        pytest.param(unstarted().running(), False, id="it runs"),
        pytest.param(unstarted().failed(1), False, id="it has failed"),
        pytest.param(unstarted().deleting(), False, id="it terminates"),
    ],
)
def test_whose_events_are_read(pod: Pod, expected: bool) -> None:
    assert bool(to_read(JOB, seen(pod), at(NOTICED))) is expected
    assert (next_check(JOB, seen(pod), at(0)) == NOTICED) is expected
    assert to_read(JOB, seen(pod), at(NOTICED - 1)) == (), "not before it takes long"


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(mxjob("digits").v1().workers(6).run_policy(suspend=True), id="suspended"),
        pytest.param(mxjob("digits").v1().workers(6).status(state="Failed"), id="over"),
        pytest.param(
            mxjob("digits").v1().workers(6).run_policy(managedBy="example.com/other"), id="of another controller"
        ),
    ],
)
def test_none_of_a_job_that_does_not_run_here(job: Any) -> None:
    assert to_read(job.job(), seen(unstarted()), at(60)) == ()


def test_few_of_many_and_of_each_template_first() -> None:
    pods = [*(unstarted(index) for index in range(6)), unstarted(0, "scheduler")]
    names = [pod.name for pod in to_read(JOB, seen(*pods), at(60))]
    assert names == ["digits-scheduler-0", WORKER_0, "digits-worker-1"]


def test_a_limit_below_the_usual_time_reads_them_in_time_for_its_failure() -> None:
    job = mxjob("digits").v1().workers(6).run_policy(pendingTimeoutSeconds=4).job()
    assert to_read(job, seen(unstarted()), at(3)) == ()
    assert len(to_read(job, seen(unstarted()), at(4))) == 1


def test_the_pod_of_a_batch_job_counts_like_any_other() -> None:
    pod = dataclasses.replace(unstarted().view(), batch_job=BatchJobRef(WORKER_0, "u"))
    assert to_read(JOB, Observed((pod,)), at(60)) == (pod,)


def test_the_reads_become_rarer() -> None:
    waited, times = 0.0, []
    for _ in range(8):
        left = next_check(JOB, seen(unstarted()), at(waited))
        assert left is not None and 0 < left <= LONGEST_INTERVAL
        waited += left
        times.append(waited)
    assert times == [10, 20, 40, 80, 160, 280, 400, 520]
    assert next_check(JOB, seen(unstarted()), at(-300)) == NOTICED, "the clock of the API server may be ahead"


# --- what they say


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([], "", id="none"),
        pytest.param([event()], f"FailedMount: {SECRET}", id="a Secret that is missing"),
        pytest.param(
            [event("FailedAttachVolume", "Multi-Attach error")], "FailedAttachVolume: Multi-Attach error", id="volume"
        ),
        pytest.param(
            [event("FailedCreatePodSandBox", LONG_NAME)], f"FailedCreatePodSandBox: {LONG_NAME}", id="a long host name"
        ),
        pytest.param(
            [event("FailedCreatePodSandBox", f"(combined from similar events): {SANDBOX.format('ab' * 32)}")],
            f"FailedCreatePodSandBox: {SANDBOX.format('...')}",
            id="a sandbox with an identifier",
        ),
        pytest.param(
            [event("NetworkNotReady", "network is not ready")], "NetworkNotReady: network is not ready", id="CNI"
        ),
        pytest.param([event("FailedScheduling", "0/1 nodes")], "", id="an earlier one of the scheduler"),
        pytest.param([event("BackOff"), event("Failed")], "", id="what the container's state says"),
        pytest.param([event("DNSConfigForming")], "", id="a harmless one"),
        pytest.param([event(type_="Normal")], "", id="no warning"),
        pytest.param([event(last=5), normal("Pulling", 5)], "", id="over: the image is pulled"),
        pytest.param([event(last=9), normal("Pulled", 5)], f"FailedMount: {SECRET}", id="after an earlier container"),
        pytest.param([event(last=9), normal("Scheduled", 9)], f"FailedMount: {SECRET}", id="another step"),
        pytest.param(
            [event(message=SUMMARY, last=120), event(last=110)], f"FailedMount: {SECRET}", id="not the summary"
        ),
        pytest.param([event(message=SUMMARY)], f"FailedMount: {SUMMARY}", id="but if there is no other"),
        pytest.param([event(message="a", last=1), event(message="b", last=9)], "FailedMount: b", id="the newest"),
        pytest.param([event(message="a"), event(message="b")], "FailedMount: a", id="one order"),
        pytest.param(
            [
                {**event(message="a"), "lastTimestamp": None, "series": {"lastObservedTime": stamp(9)}},
                event(message="b", last=5),
            ],
            "FailedMount: a",
            id="a series",
        ),
        pytest.param([{**event(message="a"), "lastTimestamp": 5}], "", id="a time that is none"),
        pytest.param([event(message="x" * 2000)], f"FailedMount: {'x' * 484}...", id="a long one"),
        pytest.param([event(message="two\n lines")], "FailedMount: two lines", id="lines"),
    ],
)
def test_the_cause(events: list[Any], expected: str) -> None:
    assert cause(events) == expected


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("no retries for 1m4s", "no retries for 2m8s"),
        ("no retries until 2026-01-02T03:04:05Z", "no retries until 2026-01-02T03:07:05.123Z"),
        ("request 0f8fad5b-d9cb-469f-a165-70867728950e failed", "request 7c9e6679-7425-40de-944b-e07fc1f90ae7 failed"),
        ("read 10.0.0.1:48392->10.0.0.2:443", "read 10.0.0.1:51034->10.0.0.2:443"),
        ("no volume (x5 over 2m)", "no volume (x9 over 5m)"),
    ],
)
def test_what_differs_from_try_to_try_is_no_other_cause(before: str, now: str) -> None:
    first = cause([event(message=before)])
    assert cause([event(message=now)], first) == first


def test_of_two_that_alternate_one_stays() -> None:
    one, other = event(message="a"), event(message="b")
    first = cause([one, other | {"lastTimestamp": stamp(1)}])
    assert cause([one | {"lastTimestamp": stamp(120)}, other | {"lastTimestamp": stamp(1)}], first) == first
    over = cause([one | {"lastTimestamp": stamp(900)}, other | {"lastTimestamp": stamp(1)}], first)
    assert (first, over) == ("FailedMount: b", "FailedMount: a"), "until it did not come again for long"


def waiting(job: DLJob, events: dict[str, Any], seconds: float = 60) -> list[str]:
    return [pod.waiting for pod in explained(job, seen(unstarted(), unstarted(1)), events, at(seconds)).pods]


def test_the_pod_gets_its_cause_and_keeps_it_until_the_next_read() -> None:
    uid = f"uid-of-{WORKER_0}"
    text = f"FailedMount: {SECRET}"
    assert waiting(JOB, {uid: [event()]}) == [text, ""]
    told = mxjob("digits").v1().workers(6).status(reason=f"{WORKER_0}: {text}").job()
    assert waiting(told, {}) == [text, ""], "else the reason would come and go"
    assert waiting(told, {uid: []}) == ["", ""], "its cause is over"
    assert waiting(told, {}, seconds=5) == ["", ""], "a pod that has only begun to wait is another one"
    assert waiting(mxjob("digits").v1().workers(6).status(reason=7).job(), {}) == ["", ""]
