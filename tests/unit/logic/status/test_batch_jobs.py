"""What batch Jobs have shown outlives their pods: the last failure, and how often they restarted a replica."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import Owner
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.observed_state import build_observed_state
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.failure import describe
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import batch_jobs
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import FIRST_CONTAINER
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState
from support.builders import MPI, UID, Resource, at, manifest_of, mpijob, stamp
from support.fake_cluster import FakeCluster, is_quiet

LIMIT = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"}
WORDS = "could not reach host b"


def terminated(code: int, seconds: float = 1, message: str = WORDS, reason: str = "Error") -> Resource:
    return {"terminated": {"exitCode": code, "reason": reason, "message": message, "finishedAt": stamp(seconds)}}


def pod(state: Resource, last: Resource | None = None, phase: str = "Running", **more: Any) -> Resource:
    name = more.pop("name", "pi-launcher-a")
    status = {"name": "main", "restartCount": int(last is not None), "state": state, "lastState": last or {}}
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-of-{name}",
            "namespace": "default",
            "creationTimestamp": stamp(more.pop("created", 0)),
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "uid": "the-job", "controller": True}],
            **more.pop("metadata", {}),
        },
        "spec": {"containers": [{"name": "main"}], "restartPolicy": more.pop("policy", "OnFailure")},
        "status": {"phase": phase, "containerStatuses": [status], **more},
    }


def gone(made: Resource) -> Resource:
    return {**made, "failedBefore": True}


def observed(*pods: Resource, condition: Resource | None = None) -> Observed:
    parsed = parse_job(mpijob(), MPI)
    own = {**manifest_of(parsed, "launcher", framework=MPI)["metadata"], "uid": "the-job", "creationTimestamp": stamp()}
    job = {"kind": "Job", "metadata": own, "status": {"conditions": [condition] if condition else []}}
    return build_observed_state(Owner("default", UID), FIRST_CONTAINER, pods, (), {"Job": [job]})


def launcher(*pods: Resource, condition: Resource | None = None) -> PodState:
    (found,) = observed(*pods, condition=condition).pods
    return found


RUNS = {"running": {"startedAt": stamp()}}
LEAVING = {"deletionTimestamp": stamp(5), "deletionGracePeriodSeconds": 0}
SLOWLY = {"deletionTimestamp": stamp(35), "deletionGracePeriodSeconds": 30}
TAINTED = [{"type": "DisruptionTarget", "status": "True"}]


@pytest.mark.parametrize(
    ("pods", "code"),
    [
        pytest.param([pod(RUNS)], None, id="none"),
        pytest.param([pod(terminated(0))], None, id="it succeeded"),
        pytest.param([pod(terminated(17))], 17, id="just now"),
        pytest.param([pod(RUNS, terminated(17))], 17, id="it runs again"),
        pytest.param([pod(terminated(3, 9), terminated(17, 1))], 3, id="twice"),
        pytest.param([pod(terminated(0, 9), terminated(17, 1))], 17, id="before it succeeded"),
        pytest.param([pod({"waiting": {"reason": "CrashLoopBackOff"}}, terminated(17))], 17, id="it waits"),
        pytest.param([pod(terminated(137, 5), terminated(17), metadata=LEAVING)], 17, id="killed with its pod"),
        pytest.param([pod(terminated(143, 6), metadata=SLOWLY)], None, id="asked to end, and not before"),
        pytest.param([pod(terminated(143, 6), phase="Failed", metadata=LEAVING)], None, id="its last status"),
        pytest.param([pod(terminated(137, 5), conditions=TAINTED)], None, id="taken away"),
        pytest.param([gone(pod(RUNS, terminated(17)))], 17, id="its pod is gone"),
        pytest.param([gone(pod(terminated(137, 5), terminated(17), metadata=LEAVING))], 17, id="killed, and gone"),
        pytest.param([pod(RUNS, created=9, name="b"), pod(terminated(4), phase="Failed")], 4, id="of an earlier pod"),
        pytest.param(
            [pod(terminated(5, 1), phase="Failed", created=3, name="b"), pod(terminated(4, 1), phase="Failed")],
            5,
            id="two in one second",
        ),
    ],
)
def test_the_last_failure(pods: list[Resource], code: int | None) -> None:
    found = launcher(*pods).last_failure
    assert (found.ended.code if found else None) == code
    if found:
        assert (found.container, found.ended.message) == ("main", WORDS)


def test_a_pod_that_is_gone_is_none() -> None:
    found = launcher(gone(pod(RUNS, terminated(17))))
    assert (found.has_pod, found.phase, found.is_active, found.ended) == (False, "Pending", True, None)
    assert found.restarts_by_job == 1
    both = launcher(pod(RUNS, terminated(17)), gone(pod(RUNS, terminated(17))))
    assert (both.has_pod, both.restarts_by_job) == (True, 1)


@pytest.mark.parametrize(
    ("pods", "count"),
    [
        ([], 0),
        ([pod(RUNS)], 0),
        ([pod(terminated(1))], 0),
        ([pod(RUNS, terminated(1))], 1),
        ([pod(terminated(1), phase="Failed", name="a"), pod(RUNS, name="b")], 1),
        ([pod(RUNS, terminated(1), name="a"), pod(RUNS, terminated(1), name="b")], 3),
    ],
)
def test_how_often_a_batch_job_restarted_its_replica(pods: list[Resource], count: int) -> None:
    assert launcher(*pods).restarts_by_job == count


def failing(state: Resource, **status: Any) -> Observed:
    """A batch Job that has failed, and what is known of its pod."""
    job = parse_job({**mpijob(), "status": status}, MPI)
    return batch_jobs.remembered(job, observed(*([state] if state else []), condition=LIMIT))


ENTRY = batch_jobs.write({}, observed(pod(RUNS, terminated(17))).pods)


def test_what_is_written_is_remembered() -> None:
    failure = {"pod": "pi-launcher-a", "container": "main", "exitCode": 17, "reason": "Error", "message": WORDS}
    assert dict(ENTRY["launcher-0"]) == {
        "uid": "the-job",
        "restarts": 1,
        "failure": {**failure, "finishedAt": stamp(1)},
    }
    (found,) = failing({}, batchJobs=ENTRY).pods
    assert found.last_failure == launcher(pod(RUNS, terminated(17))).last_failure
    assert found.restarts_by_job == 1
    assert batch_jobs.write(ENTRY, [found]) == ENTRY
    assert batch_jobs.write(ENTRY, [found], final=True) == {"launcher-0": {"uid": "the-job", "restarts": 1}}


def test_nothing_is_written_of_a_replica_that_did_not_fail() -> None:
    assert batch_jobs.write({}, observed(pod(RUNS)).pods) == {}
    assert batch_jobs.write({}, observed().pods) == {}


def test_an_older_failure_does_not_replace_a_newer_one() -> None:
    (found,) = failing(pod(terminated(4, 0), phase="Failed"), batchJobs=ENTRY).pods
    assert found.last_failure is not None
    assert found.last_failure.ended.code == 17
    (found,) = failing(pod(terminated(4, 9), phase="Failed"), batchJobs=ENTRY).pods
    assert found.last_failure is not None
    assert found.last_failure.ended.code == 4


def test_another_batch_job_has_another_failure_and_more_restarts() -> None:
    former = {"launcher-0": {**ENTRY["launcher-0"], "uid": "former", "restarts": 2, "before": 1}}
    (found,) = failing({}, batchJobs=former).pods
    assert (found.last_failure, found.restarts_by_job) == (None, 0)
    written = batch_jobs.write(former, observed(pod(RUNS, terminated(17))).pods)
    assert (written["launcher-0"]["before"], written["launcher-0"]["restarts"]) == (3, 1)
    assert batch_jobs.restarts(written) == {"launcher-0": 4}


@pytest.mark.parametrize(
    "value", [None, [], "x", {"launcher-0": 1}, {"launcher-0": {"uid": "the-job", "restarts": "x", "failure": [1]}}]
)
def test_a_field_that_somebody_else_wrote(value: Any) -> None:
    (found,) = failing({}, batchJobs=value).pods
    assert (found.last_failure, found.restarts_by_job) == (None, 0)
    assert batch_jobs.restarts(batch_jobs.read({"batchJobs": value})) == {}


@pytest.mark.parametrize(
    ("retries", "entries", "counted"),
    [
        ({}, {}, {}),
        ({"launcher-0": 2, "worker-0": 1}, {}, {"launcher-0": 2, "worker-0": 1}),
        ({"launcher-0": 1, "worker-0": 1}, ENTRY, {"worker-0": 1}),
        ({"launcher-0": 3}, ENTRY, {"launcher-0": 2}),
        ({"worker-0": 1}, ENTRY, {"worker-0": 1}),
    ],
)
def test_the_counts_of_the_operator_and_those_of_batch_jobs(retries: Any, entries: Any, counted: Any) -> None:
    job = parse_job({**mpijob(), "status": {"retries": retries, "batchJobs": entries}}, MPI)
    assert batch_jobs.counted(job) == counted
    if "launcher-0" in retries:
        assert batch_jobs.with_restarts(counted, entries) == retries


def played(limit: int | None = None, policy: str = "OnFailure", **run_policy: Any) -> FakeCluster:
    job = mpijob(worker=1, runPolicy={**run_policy, **({} if limit is None else {"backoffLimit": limit})})
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = policy
    fake_cluster = FakeCluster(job, MPI)
    fake_cluster.start()
    return fake_cluster


def crash(fake_cluster: FakeCluster, code: int = 17) -> None:
    fake_cluster.advance(10)
    pods = [
        name for name, one in fake_cluster.pods.items() if "launcher" in name and one["status"]["phase"] == "Running"
    ]
    (name,) = pods
    pod, state = fake_cluster.pods[name], terminated(code, (fake_cluster.now - at(0)).total_seconds())
    if pod["spec"]["restartPolicy"] == "Never":
        fake_cluster.set_state(pod, "Failed", state)
        return
    restarts = pod["status"]["containerStatuses"][0]["restartCount"] + 1
    fake_cluster.set_state(pod, "Running", RUNS)
    pod["status"]["containerStatuses"][0] |= {"restartCount": restarts, "lastState": state}


@pytest.mark.parametrize("policy", ["OnFailure", "Never"])
@pytest.mark.parametrize("limit", [1, 3])
def test_the_end_has_the_words_of_the_launcher(policy: str, limit: int) -> None:
    fake_cluster = played(limit, policy)
    # under OnFailure the Job controller deletes the pod with the last restart
    crashes = limit if policy == "OnFailure" else limit + 1
    for number in range(crashes):
        crash(fake_cluster)
        last = number == crashes - 1
        if not last or policy == "Never":
            fake_cluster.planned()
        if not last:
            fake_cluster.step()
            fake_cluster.run_all()
            fake_cluster.settle()
            assert fake_cluster.status["state"] == "Running"
            assert fake_cluster.status["retries"] == {"launcher-0": number + 1}
        elif policy == "OnFailure":
            seen = fake_cluster.planned()  # the pod, before the Job controller acts
            assert seen.status is not None
            fake_cluster.carry_out(seen)
    fake_cluster.settle()
    status = fake_cluster.status
    failure = status["failure"]
    assert (failure["reason"], failure["container"], failure["exitCode"]) == ("BackoffLimitExceeded", "launcher", 17)
    assert failure["message"] == WORDS
    assert failure["pod"].startswith("pi-launcher-")
    text = f"container launcher of pod {failure['pod']} exited with 17 (Error), and its batch Job has no retries left: {WORDS}"
    assert status["reason"] == f"BackoffLimitExceeded: {text}"
    assert [one.message for one in fake_cluster.events if one.reason == "MPIJobFailed"] == [text]
    assert status["retries"] == {"launcher-0": limit}
    assert "failure" not in str(status["batchJobs"])
    assert is_quiet(fake_cluster.planned())
    assert not [pod for pod in fake_cluster.pods if "launcher" in pod] or policy == "Never"


def test_each_restart_is_an_event_once() -> None:
    fake_cluster = played(5)
    for _ in range(2):
        crash(fake_cluster)
        fake_cluster.settle()
        fake_cluster.settle()
    events = [one.message for one in fake_cluster.events if one.reason == "MPIJobRestarting"]
    assert len(events) == 2
    assert events[0].endswith(f"container launcher of pod pi-launcher-0 exited with 17 (Error): {WORDS}")


def test_restarts_of_the_launcher_are_no_retries_of_the_operator() -> None:
    """The batch Job has a limit of its own, and the attempt of the next one does not follow it."""
    job = mpijob(worker=1, runPolicy={"backoffLimit": 2, "maxRestartsPerReplica": 1})
    job["spec"]["mpiReplicaSpecs"]["Worker"]["restartPolicy"] = "OnFailure"
    fake_cluster = FakeCluster(job, MPI)
    fake_cluster.start()
    crash(fake_cluster)
    fake_cluster.settle()
    fake_cluster.exit("worker", 0, 1)
    fake_cluster.settle()
    assert (fake_cluster.status["state"], fake_cluster.status["retries"]) == ("Running", {"launcher-0": 1})
    batch = fake_cluster.others["Job"]
    del batch["pi-launcher"]
    fake_cluster.settle()
    assert batch["pi-launcher"]["metadata"]["labels"]["dljob.operator/attempt"] == "0"
    fake_cluster.run_all()
    crash(fake_cluster)
    fake_cluster.settle()
    assert (fake_cluster.status["state"], fake_cluster.status["retries"]) == ("Running", {"launcher-0": 2})


@pytest.mark.parametrize("reset", ["suspend", "edit"])
def test_what_is_reset_with_the_other_progress(reset: str) -> None:
    fake_cluster = played(5)
    crash(fake_cluster)
    fake_cluster.settle()
    assert {"retries", "batchJobs"} <= set(fake_cluster.status)
    if reset == "suspend":
        fake_cluster.edit(lambda spec: spec["runPolicy"].update(suspend=True))
    else:
        fake_cluster.edit(lambda spec: spec.update(slotsPerWorker=2))
    fake_cluster.settle()
    assert not {"retries", "batchJobs"} & set(fake_cluster.status)


def test_a_job_of_a_launcher_that_crashed_and_succeeds_has_no_failure() -> None:
    fake_cluster = played(5)
    crash(fake_cluster)
    fake_cluster.settle()
    fake_cluster.exit("launcher", 0, 0)
    fake_cluster.settle()
    assert (fake_cluster.status["state"], "failure" in fake_cluster.status) == ("Succeeded", False)
    assert fake_cluster.status["retries"] == {"launcher-0": 1}
    assert "failure" not in str(fake_cluster.status["batchJobs"])


def test_the_pods_watch_may_be_behind_that_of_the_jobs() -> None:
    """The Job controller reports the failure after the kubelet, but a cache has the two from two watches."""
    fake_cluster = played(0)
    before = copy.deepcopy(fake_cluster.pods)
    crash(fake_cluster)
    fake_cluster.run_batch_jobs()
    job = fake_cluster.others["Job"]["pi-launcher"]
    job["status"]["conditions"][0]["lastTransitionTime"] = fake_cluster.time
    fake_cluster.pods = before
    waiting = fake_cluster.planned()
    assert (is_quiet(waiting), waiting.requeue_after) == (True, batch_jobs.POD_REQUEUE)
    fake_cluster.advance(60)
    fake_cluster.settle()
    assert fake_cluster.status["failure"]["reason"] == "BackoffLimitExceeded"


def test_a_failure_that_nothing_has_seen_names_the_batch_job() -> None:
    fake_cluster = played(0)
    crash(fake_cluster)
    fake_cluster.settle()
    failure = fake_cluster.status["failure"]
    assert "pod" not in failure
    assert fake_cluster.status["reason"].startswith("BackoffLimitExceeded: batch Job pi-launcher failed")


def test_out_of_memory_is_the_reason_as_for_other_replicas() -> None:
    (found,) = observed(pod(RUNS, terminated(137, reason="OOMKilled", message="")), condition=LIMIT).pods
    failure = describe(found)
    assert (failure.reason, failure.exit_code) == ("OOMKilled", 137)
    assert failure.message.endswith("exited with 137 (OOMKilled), and its batch Job has no retries left")
