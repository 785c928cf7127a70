"""Cleanup of a finished job."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.plan import plan
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.clean_pod_policy import (
    GRACE_PERIOD,
    cleanup_targets,
    grace_period,
    is_clean,
    never_started,
    presumed_unstarted,
    running_again,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import (
    BatchJobRef,
    Observed,
    OwnedObject,
    PodState,
    Termination,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Plan
from support.builders import MXNET, NOW, TENSORFLOW, Pod, at, mxjob, observed, pod_of, stamp, tfjob

SERVICES = {"digits-scheduler-0", "mxjob-aycw"}


def finished(policy: str) -> tuple[DLJob, Observed]:
    """One pod in each state that it can be in when the job ends."""
    job = mxjob("digits").v1().workers(6).option(RuntimeId="aycw").run_policy(cleanPodPolicy=policy).job()
    states = [
        pod_of(job, "scheduler").succeeded(),
        pod_of(job, "worker", 0).running(),
        pod_of(job, "worker", 1),
        pod_of(job, "worker", 2).failed(1),
        pod_of(job, "worker", 3).restarted(1),
        pod_of(job, "worker", 4).exited(0),
        pod_of(job, "worker", 5).running().deleting(),
    ]
    return job, observed(job, states)


@pytest.mark.parametrize(
    ("policy", "deleted"),
    [
        ("All", {"scheduler-0", "worker-0", "worker-1", "worker-2", "worker-3", "worker-4"}),
        ("Running", {"worker-0", "worker-1", "worker-3", "worker-4"}),
        ("None", {"worker-1"}),
    ],
)
def test_pods_to_delete(policy: str, deleted: set[str]) -> None:
    job, seen = finished(policy)
    going = cleanup_targets(job, seen)
    assert {d.name.removeprefix("digits-") for d in going if d.kind == "Pod"} == deleted
    assert {d.name for d in going if d.kind == "Service"} == (SERVICES if policy != "None" else set())
    assert all(d.uid for d in going), "only that very object"


def test_a_pod_whose_program_has_just_ended_keeps_its_log() -> None:
    """The kubelet reports the termination of the container before the phase of the pod."""
    job, _ = finished("Running")
    pod = pod_of(job, "scheduler").succeeded().change(lambda p: p["status"].update(phase="Running"))
    assert cleanup_targets(job, observed(job, [pod], services=False)) == ()


@pytest.mark.parametrize(
    ("policy", "doubted", "deleted"), [("Running", (0, 1), (0, 1, 2)), ("All", (), (0, 1, 2)), ("None", (), (0,))]
)
def test_a_pod_that_runs_after_the_end_of_its_replica_is_one_of_a_stale_cache_or_one_too_many(
    policy: str, doubted: tuple[int, ...], deleted: tuple[int, ...]
) -> None:
    """The status has the workers 0 and 1 as completed; the cache shows them as pending and as running. None would
    delete the first one, and asks the API server whether it has started."""
    made = mxjob("digits").v1().workers(3).run_policy(cleanPodPolicy=policy)
    job = made.status(state="Succeeded", completed={"worker": "0-1"}).job()
    seen = observed(job, [pod_of(job, "worker", 0), *(pod_of(job, "worker", i).running() for i in (1, 2))])
    assert running_again(job, seen) == tuple(f"uid-of-digits-worker-{index}" for index in doubted)
    pods = [d.name for d in cleanup_targets(job, seen) if d.kind == "Pod"]
    assert pods == [f"digits-worker-{index}" for index in deleted]


@pytest.mark.parametrize(("exit_code", "doubted"), [(1, ("uid-of-digits-worker-0",)), (None, ())])
def test_so_is_the_pod_whose_exit_failed_the_job(exit_code: int | None, doubted: tuple[str, ...]) -> None:
    """A pod that failed the job without an exit code, such as one that is evicted, may be running on."""
    made = mxjob("digits").v1().workers(1).run_policy(cleanPodPolicy="Running")
    failure = {"pod": "digits-worker-0", "reason": "Error", "exitCode": exit_code}
    job = made.status(state="Failed", failure={k: v for k, v in failure.items() if v is not None}).job()
    assert running_again(job, observed(job, [pod_of(job, "worker", 0).running()], services=False)) == doubted


@pytest.mark.parametrize("ended", [True, False])
def test_pods_that_have_ended_or_are_being_deleted_are_no_doubt(ended: bool) -> None:
    made = mxjob("digits").v1().workers(1).run_policy(cleanPodPolicy="Running")
    job = made.status(state="Succeeded", completed={"worker": "0"}).job()
    pod = pod_of(job, "worker", 0).exited(0) if ended else pod_of(job, "worker", 0).running().deleting()
    assert running_again(job, observed(job, [pod], services=False)) == ()


def test_a_sidecar_of_a_completed_replica_is_ended() -> None:
    job = mxjob("digits").v1().workers(1).run_policy(cleanPodPolicy="Running").status(completed={"worker": "0"}).job()
    pod = pod_of(job, "worker", 0).exited(0)
    assert len(cleanup_targets(job, observed(job, [pod], services=False))) == 1


def launcher(**changes: Any) -> PodState:
    """A replica that the batch Job digits-launcher runs, as a cache shows it while the Job is active."""
    made = pod_of(mxjob("digits").v1().workers(1).job(), "worker", 0).running().view()
    batch_job = BatchJobRef("digits-launcher", "uid-of-digits-launcher")
    return dataclasses.replace(made, name="digits-launcher-x2b4z", batch_job=batch_job, **changes)


ENDED = {code: Termination(code, "", "", stamp()) for code in (0, 1)}


@pytest.mark.parametrize(
    ("replica", "status", "kept"),
    [
        pytest.param(launcher(), {}, False, id="active"),
        pytest.param(launcher(), {"failure": {"pod": "digits-launcher"}}, True, id="the Job failed the job"),
        pytest.param(launcher(), {"failure": {"pod": "digits-launcher-x2b4z"}}, True, id="its pod failed the job"),
        pytest.param(launcher(), {"failure": {"pod": "digits-launcher-other"}}, True, id="an earlier pod of it did"),
        pytest.param(launcher(), {"failure": {"pod": "digits-launcher2-x"}}, False, id="another one's pod did"),
        pytest.param(launcher(ended=ENDED[1]), {"failure": {"pod": "digits-launcher-x2b4z"}}, True, id="with an error"),
        pytest.param(launcher(), {"completed": {"worker": "0"}}, True, id="completed"),
        pytest.param(launcher(), {"completed": {"worker": "1"}}, False, id="another one is completed"),
        pytest.param(launcher(ended=ENDED[0]), {"completed": {"worker": "0"}}, False, id="a sidecar goes on"),
    ],
)
def test_a_cache_behind_the_status_costs_no_batch_job_its_logs(
    replica: PodState, status: dict[str, Any], kept: bool
) -> None:
    job = mxjob("digits").v1().workers(1).run_policy(cleanPodPolicy="Running").status(**status).job()
    assert [d.name for d in cleanup_targets(job, Observed((replica,)))] == ([] if kept else ["digits-launcher"])


@pytest.mark.parametrize(
    ("kind", "found", "deleted"),
    [
        ("Service", OwnedObject("1"), True),
        ("Service", OwnedObject("1", lifetime="pods"), True),
        ("Service", OwnedObject("1", lifetime="job"), False),
        ("ConfigMap", OwnedObject("1", "hash", "pods"), True),
        ("ConfigMap", OwnedObject("1", "hash", "job"), False),
        ("ConfigMap", OwnedObject("1", "hash"), True),
        ("Deployment", OwnedObject("1", "hash"), False),
    ],
)
def test_objects_of_the_pods_go_with_them(kind: str, found: OwnedObject, deleted: bool) -> None:
    """A ConfigMap with a hash and no lifetime holds the environment of the pods."""
    job, _ = finished("Running")
    seen = Observed(owned_objects={(kind, "a"): found})
    assert [(d.kind, d.name) for d in cleanup_targets(job, seen)] == ([(kind, "a")] if deleted else [])


@pytest.mark.parametrize(("policy", "clean"), [("All", False), ("Running", False), ("None", True)])
def test_terminating_pods_are_waited_for(policy: str, clean: bool) -> None:
    job, _ = finished(policy)
    seen = observed(job, [pod_of(job, "worker", 5).running().deleting()], services=False)
    assert is_clean(job, seen) is clean


def test_nothing_left() -> None:
    job, _ = finished("Running")
    assert is_clean(job, observed(job, [pod_of(job, "scheduler").succeeded()], services=False))
    assert not is_clean(job, observed(job, []))


# --- the grace period after a success

V1_JOB = mxjob("digits").v1().workers(1).run_policy(cleanPodPolicy="None").job()
RUNNING_CONDITION = {"conditions": [{"type": "Running", "status": "False"}]}

UNFINISHED = {
    "runs": (lambda worker: worker.running(), True),
    "has ended": (lambda worker: worker.succeeded(), False),
    "has failed": (lambda worker: worker.failed(1), False),
    "never started": (lambda worker: worker, False),
    "is deleted": (lambda worker: worker.running().deleting(), False),
    "has a sidecar that goes on": (lambda worker: worker.exited(0), True),
    "is started again and again": (
        lambda worker: worker.change(lambda pod: pod["spec"].update(restartPolicy="Always")).running(),
        False,
    ),
}


def waits(job: DLJob, *pods: Pod, after: float = 0) -> float | None:
    return grace_period(job, MXNET, observed(job, pods), stamp(), at(after))


@pytest.mark.parametrize("state", UNFINISHED)
def test_which_replicas_delay_the_cleanup(state: str) -> None:
    change, waited = UNFINISHED[state]
    job, _ = finished("Running")
    scheduler = pod_of(job, "scheduler").succeeded()
    assert waits(job, scheduler, change(pod_of(job, "worker"))) == (GRACE_PERIOD if waited else None)


@pytest.mark.parametrize(("policy", "waited"), [("All", None), ("Running", GRACE_PERIOD), ("None", None)])
def test_only_clean_pod_policy_running_delays_the_cleanup(policy: str, waited: float | None) -> None:
    job, _ = finished(policy)
    assert waits(job, pod_of(job, "worker").running()) == waited


def on_a_node(pod: Pod) -> Pod:
    return pod.change(lambda one: one["spec"].update(nodeName="node-1"))


@pytest.mark.parametrize(
    ("pod", "waited"),
    [
        pytest.param(on_a_node(pod_of(V1_JOB, "worker")), GRACE_PERIOD, id="its start may be reported late"),
        pytest.param(on_a_node(pod_of(V1_JOB, "worker").waiting("ContainerCreating")), GRACE_PERIOD, id="it is made"),
        pytest.param(pod_of(V1_JOB, "worker"), None, id="no node"),
        pytest.param(on_a_node(pod_of(V1_JOB, "worker")).deleting(), None, id="it is deleted"),
        pytest.param(on_a_node(pod_of(V1_JOB, "worker").running()), None, id="it runs"),
    ],
)
def test_none_deletes_no_pod_that_may_have_run(pod: Pod, waited: float | None) -> None:
    job = dataclasses.replace(V1_JOB, status={"state": "Succeeded", **RUNNING_CONDITION})
    assert waits(job, pod) == waited
    assert waits(job, pod, after=GRACE_PERIOD) is None


@pytest.mark.parametrize(("after", "left"), [(0, 10), (2, 8), (9.5, 0.5), (10, None), (3600, None), (-3600, None)])
def test_how_long(after: float, left: float | None) -> None:
    job, _ = finished("Running")
    assert waits(job, pod_of(job, "worker").running(), after=after) == left


@pytest.mark.parametrize(("policy", "waited"), [("All", GRACE_PERIOD), ("Running", GRACE_PERIOD), ("None", None)])
def test_a_sidecar_that_is_at_work_delays_the_deletion_of_its_pod(policy: str, waited: float | None) -> None:
    job, _ = finished(policy)
    assert waits(job, pod_of(job, "worker").exited(0)) == waited
    assert waits(job, pod_of(job, "worker").exited(1)) == (GRACE_PERIOD if policy == "Running" else None)
    assert waits(job, pod_of(job, "worker").exited(0), after=GRACE_PERIOD) is None
    assert waits(job, pod_of(job, "worker").exited(0).deleting()) is None


def test_a_program_that_runs_again_has_no_sidecar_to_wait_for() -> None:
    job, _ = finished("All")
    assert waits(job, pod_of(job, "worker").restarted(0)) is None


@pytest.mark.parametrize("policy", ["All", "Running", "None"])
def test_it_delays_the_deletion_of_the_job_too(policy: str) -> None:
    """Katib sends the metrics of a trial from a sidecar, and runs a trial again whose job is gone."""
    held = {"state": "Succeeded", "completionTime": stamp()}
    made = mxjob("digits").v1().workers(1).run_policy(cleanPodPolicy=policy, ttlSecondsAfterFinished=0)
    job = made.status(**held).job()
    sidecar, ended = pod_of(job, "worker").exited(0), pod_of(job, "worker").succeeded()

    def planned(pod: Pod, after: float) -> Plan:
        return plan(job, MXNET, observed(job, [pod]), at(after))

    assert (planned(sidecar, 0).delete_job, planned(sidecar, 0).requeue_after) == (False, GRACE_PERIOD)
    assert planned(sidecar, GRACE_PERIOD).delete_job
    assert planned(ended, 0).delete_job
    assert planned(pod_of(job, "worker").exited(0).deleting(), 0).delete_job
    failed = made.status(state="Failed", completionTime=stamp(), failure={"reason": "Error"}).job()
    assert plan(failed, MXNET, observed(failed, [sidecar]), NOW).delete_job


def test_a_job_without_a_completion_time_is_cleaned_up_at_once() -> None:
    job, _ = finished("Running")
    assert grace_period(job, MXNET, observed(job, [pod_of(job, "worker").running()]), None, at(0)) is None


@pytest.mark.parametrize(("type_", "waited"), [("ps", None), ("worker", GRACE_PERIOD), ("evaluator", GRACE_PERIOD)])
def test_long_running_replicas_do_not_delay_the_cleanup(type_: str, waited: float | None) -> None:
    resource = tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=1, ps=1, evaluator=1)
    resource["spec"]["runPolicy"] = {"cleanPodPolicy": "Running"}
    job = parse_job(resource, TENSORFLOW)
    seen = observed(job, [pod_of(job, type_, framework=TENSORFLOW).running()])
    assert grace_period(job, TENSORFLOW, seen, stamp(), at(0)) == waited


@pytest.mark.parametrize(
    ("conditions", "deleted"),
    [
        ([], True),
        ([{"type": "Created", "status": "True"}], True),
        ([{"type": "Running", "status": "False"}], False),
        ([{"type": "Restarting", "status": "True"}], False),
    ],
)
def test_a_job_that_was_refused_while_it_was_created_leaves_nothing_behind(
    conditions: list[dict[str, str]], deleted: bool
) -> None:
    """Its first pods would hold their GPUs. One that had run keeps what cleanPodPolicy says, also where Kubernetes
    refuses the pod of a restart."""
    job = mxjob().v1().status(state="Failed", failure={"reason": "RefusedByKubernetes"}, conditions=conditions).job()
    assert job.run_policy.clean_pod_policy == "None"
    seen = observed(job, [pod_of(job, "scheduler").failed()])
    assert ("Pod" in [d.kind for d in cleanup_targets(job, seen)]) == deleted
    assert is_clean(job, seen) != deleted


# --- pods that have not started


def with_init(state: dict[str, Any]) -> Pod:
    made = pod_of(V1_JOB, "worker", 0)
    return made.change(lambda p: p["status"].update(initContainerStatuses=[{"name": "copy", "state": state}]))


def beside(state: dict[str, Any], **more: Any) -> Pod:
    """A pod one container of which is in ``state`` while another waits: Kubernetes calls it pending."""
    statuses = [
        {"name": "mxnet", "state": {"waiting": {"reason": "ImagePullBackOff"}}},
        {"name": "x", "state": state, **more},
    ]
    return pod_of(V1_JOB, "worker", 0).change(lambda p: p["status"].update(containerStatuses=statuses))


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(pod_of(V1_JOB, "worker"), True, id="no node"),
        pytest.param(pod_of(V1_JOB, "worker").waiting("ImagePullBackOff"), True, id="no image"),
        pytest.param(pod_of(V1_JOB, "worker").waiting("ContainerCreating"), True, id="no volume"),
        pytest.param(with_init({"running": {}}), True, id="an init container runs"),
        pytest.param(with_init({"waiting": {"reason": "CrashLoopBackOff"}}), True, id="an init container fails"),
        pytest.param(beside({"running": {}}), False, id="another container runs"),
        pytest.param(beside({"terminated": {"exitCode": 1}}), False, id="another container has ended"),
        pytest.param(beside({"waiting": {}}, restartCount=1), False, id="another container has been restarted"),
        pytest.param(beside({"waiting": {}}, lastState={"terminated": {}}), True, id="a state without content"),
        pytest.param(pod_of(V1_JOB, "worker").running(), False, id="running"),
        pytest.param(pod_of(V1_JOB, "worker").failed(1), False, id="failed"),
        pytest.param(pod_of(V1_JOB, "worker").refused_by_node(), False, id="its node has refused it"),
        pytest.param(pod_of(V1_JOB, "worker").succeeded(), False, id="succeeded"),
    ],
)
@pytest.mark.parametrize("state", ["Failed", "Succeeded"])
def test_none_keeps_every_pod_but_those_that_would_start_in_a_job_that_is_over(
    pod: Pod, expected: bool, state: str
) -> None:
    failure = {"failure": {"reason": "Error", "pod": pod.resource()["metadata"]["name"]}} if state == "Failed" else {}
    job = dataclasses.replace(V1_JOB, status={"state": state, **RUNNING_CONDITION, **failure})
    seen = observed(job, [pod])
    assert never_started(seen.pods[0]) is expected
    gone = [deletion.uid for deletion in cleanup_targets(job, seen)]
    assert gone == ([seen.pods[0].uid] if expected else []), "also the pod that the failure names"
    assert presumed_unstarted(job, seen) == tuple(gone)
    assert is_clean(job, seen) is not expected


@pytest.mark.parametrize("policy", ["All", "Running"])
def test_the_other_policies_presume_nothing(policy: str) -> None:
    job, seen = finished(policy)
    assert presumed_unstarted(job, seen) == ()


def test_a_batch_job_without_a_pod_is_deleted_too() -> None:
    """Kubernetes would create its pod as soon as a quota permits."""
    pod = dataclasses.replace(pod_of(V1_JOB, "worker").view(), batch_job=BatchJobRef("digits-worker-0", "u"))
    for status in ({"state": "Succeeded"}, {"state": "Failed", "failure": {"reason": "Error"}}):
        job = dataclasses.replace(V1_JOB, status={**status, **RUNNING_CONDITION})
        assert [d.kind for d in cleanup_targets(job, Observed((pod,)))] == ["Job"]
        assert presumed_unstarted(job, Observed((pod,))) == ()
