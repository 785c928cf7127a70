"""Which pods have failed, and whether the job fails with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.pod_ends import has_failed
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.failure import (
    action_for,
    describe,
    explain,
    find_failure,
    is_fatal,
    precedes_success,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.retries import retries_of
from ansible_collections.dljob.operator.plugins.module_utils.values.failure import Failure
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from support.builders import MXNET, PYTORCH, MXJob, Pod, mxjob, observed, pod_of, pytorchjob

NEVER = mxjob().v1alpha1().servers(1).workers(2).restart("Never").job()
ON_FAILURE = mxjob().v1alpha1().servers(1).workers(2).restart("OnFailure").job()


@pytest.mark.parametrize(
    ("pod", "failed"),
    [
        (pod_of(NEVER, "worker"), False),
        (pod_of(NEVER, "worker").running(), False),
        (pod_of(NEVER, "worker").succeeded(), False),
        (pod_of(NEVER, "worker").failed(1), True),
        (pod_of(NEVER, "worker").exited(1), True),  # only a sidecar still runs
        (pod_of(NEVER, "worker").exited(0), False),
        (pod_of(NEVER, "worker").refused_by_node(), True),
        (pod_of(ON_FAILURE, "worker").exited(1), False),  # the kubelet will restart it
        (pod_of(ON_FAILURE, "worker").restarted(1), False),
        (pod_of(ON_FAILURE, "worker").failed(1), True),  # for example evicted
    ],
)
def test_failed_pods(pod: Pod, failed: bool) -> None:
    assert has_failed(pod.view()) is failed


def failure(job: MXJob, *pods: Pod) -> Failure | None:
    made = job.job()
    return find_failure(made, observed(made, pods))


# --- v1alpha1: only the success target's exit decides the outcome


@pytest.mark.parametrize("flavor", ["v1alpha1", "fioravanzo", "mpba"])
@pytest.mark.parametrize("type_", ["worker", "server"])
def test_v1alpha1_no_other_replica_fails_the_job(flavor: str, type_: str) -> None:
    job = mxjob().flavor(flavor).servers(1).workers(1).restart("Never")
    assert failure(job, pod_of(job.job(), type_).failed(1)) is None


@pytest.mark.parametrize("flavor", ["v1alpha1", "fioravanzo", "mpba"])
def test_v1alpha1_the_schedulers_permanent_error_does(flavor: str) -> None:
    job = mxjob().flavor(flavor).restart("OnFailure")
    chief = pod_of(job.job(), "scheduler")
    assert failure(job, chief.restarted(1)), "though the kubelet restarted it, as its restartPolicy requires"
    assert failure(job, chief.failed(1))
    assert failure(job, chief.failed(137, "OOMKilled"))
    assert failure(job, chief.restarted(137)) is None


def test_v1alpha1_the_chief_of_the_termination_policy() -> None:
    job = mxjob().v1alpha1().workers(2).chief("Worker", 1)
    assert failure(job, pod_of(job.job(), "scheduler").failed(1), pod_of(job.job(), "worker", 0).failed(1)) is None
    assert failure(job, pod_of(job.job(), "worker", 1).failed(1))


@pytest.mark.parametrize("gone", [lambda p: p.deleting(), lambda p: p.disrupted()])
def test_v1alpha1_a_disruption_is_not_a_failure_of_the_program(gone: object) -> None:
    job = mxjob().v1alpha1().restart("Never")
    assert failure(job, gone(pod_of(job.job(), "scheduler").failed(1))) is None  # type: ignore[operator]


def test_every_process_of_a_local_job_decides() -> None:
    job = mxjob().v1alpha1().without("Scheduler").workers(2).option(jobMode="local").restart("Never")
    assert failure(job, pod_of(job.job(), "worker", 1).failed(1))


# --- v1: each replica by its restart policy


@pytest.mark.parametrize("type_", ["scheduler", "server", "worker"])
@pytest.mark.parametrize(
    ("policy", "code", "fails"),
    [
        ("Never", 1, True),
        ("Never", 137, True),
        ("ExitCode", 1, True),
        ("ExitCode", 127, True),
        ("ExitCode", 128, False),
        ("ExitCode", 137, False),
        ("OnFailure", 1, False),
        ("Always", 1, False),
    ],
)
def test_v1_restart_policy_decides(type_: str, policy: str, code: int, fails: bool) -> None:
    job = mxjob().v1().servers(1).workers(1).restart(policy)
    assert bool(failure(job, pod_of(job.job(), type_).failed(code))) is fails


@pytest.mark.parametrize(("policy", "fails"), [("ExitCode", False), ("Never", True), ("OnFailure", False)])
def test_the_code_of_an_init_container_is_not_that_of_the_program(policy: str, fails: bool) -> None:
    """In training-operator (pkg/controller.v1/common/pod.go) a pod without a code of its default container is retried."""
    job = mxjob().v1().workers(1).restart(policy)
    status = {
        "phase": "Failed",
        "containerStatuses": [{"name": "mxnet", "state": {"waiting": {"reason": "PodInitializing"}}}],
        "initContainerStatuses": [{"name": "fetch", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}],
    }
    pod = pod_of(job.job(), "worker").change(lambda one: one.update(status=status))
    assert bool(failure(job, pod)) is fails


def test_v1_never_means_never() -> None:
    job = mxjob().v1().workers(1)
    assert failure(job, pod_of(job.job(), "worker").failed(137).disrupted())
    assert failure(job, pod_of(job.job(), "worker").refused_by_node())


@pytest.mark.parametrize(
    ("pod", "fails"),
    [
        (lambda p: p.running().disrupted().deleting(), True),
        (lambda p: p.exited(143).disrupted().deleting(), True),
        (lambda p: p.failed(143).disrupted().deleting(), True),
        (lambda p: p.exited(0).disrupted().deleting(), False),
        (lambda p: p.succeeded().disrupted().deleting(), False),
        (lambda p: p.disrupted().deleting(), False),  # no container of it ever ran
        (lambda p: p.running().disrupted(), False),  # the eviction may be cancelled
        (lambda p: p.running().deleting(), False),  # by a user, who gets a new one
        (lambda p: p.failed(143).deleting(), False),
    ],
)
def test_never_means_never_for_a_drained_pod_too(pod: Any, fails: bool) -> None:
    job = mxjob().v1().workers(2)
    found = failure(job, pod(pod_of(job.job(), "worker", 1)))
    assert (found is not None) == fails
    if found:
        assert (found.reason, found.pod, found.exit_code) == ("DisruptionTarget", "digits-worker-1", None)
        assert "the cluster deletes pod digits-worker-1" in found.message


@pytest.mark.parametrize(
    "job",
    [
        mxjob().v1().workers(2).restart("OnFailure"),
        mxjob().v1().workers(2).restart("ExitCode"),
        mxjob().v1().workers(2).run_policy(restartScope="Job"),
        mxjob()
        .v1()
        .workers(2)
        .run_policy(
            podFailurePolicy={"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
        ),
        mxjob().v1alpha1().workers(2).restart("Never"),
    ],
    ids=["OnFailure", "ExitCode", "restartScope", "rule", "v1alpha1"],
)
def test_a_drained_pod_gets_a_new_one_otherwise(job: MXJob) -> None:
    assert failure(job, pod_of(job.job(), "worker", 1).running().disrupted().deleting()) is None


def test_v1_exit_code_of_a_disrupted_pod_is_ignored() -> None:
    job = mxjob().v1().workers(1).restart("ExitCode")
    assert failure(job, pod_of(job.job(), "worker").failed(1).disrupted()) is None
    assert failure(job, pod_of(job.job(), "worker").refused_by_node()) is None


def test_v1_in_place_restarts_are_no_failure() -> None:
    job = mxjob().v1().workers(1).restart("OnFailure")
    assert failure(job, pod_of(job.job(), "worker").restarted(1, times=9)) is None


# --- elastic workers


def elastic(master: int = 0) -> DLJob:
    job = pytorchjob(master=master, worker=2, elasticPolicy={"minReplicas": 1})
    for entry in job["spec"]["pytorchReplicaSpecs"].values():
        entry["restartPolicy"] = "Never"
    return parse_job(job, PYTORCH)


@pytest.mark.parametrize(
    ("master", "failed", "completed", "pod"),
    [
        (0, (), {}, None),
        (0, (1,), {}, None),
        (0, (0, 1), {}, "example-job-worker-0"),
        (0, (1,), {"worker": {0}}, "example-job-worker-1"),
        (0, (), {"worker": {0, 1}}, None),
        (1, (0, 1), {}, None),  # the master decides
    ],
)
def test_the_last_elastic_worker_fails_the_job(
    master: int, failed: tuple[int, ...], completed: Mapping[str, set[int]], pod: str | None
) -> None:
    job = elastic(master)
    pods = [pod_of(job, "worker", index, framework=PYTORCH).failed(1) for index in failed]
    found = find_failure(job, observed(job, pods), completed)
    assert (found.pod if found else None) == pod


# --- podFailurePolicy

DISRUPTION = {"onPodConditions": [{"type": "DisruptionTarget"}]}


def with_rule(action: str, requirement: Mapping[str, Any], restart: str = "OnFailure") -> DLJob:
    rules = [{"action": action, **requirement}]
    return mxjob().v1().workers(1).restart(restart).run_policy(podFailurePolicy={"rules": rules}).job()


def on_code(code: int) -> Mapping[str, Any]:
    return {"onExitCodes": {"operator": "In", "values": [code]}}


@pytest.mark.parametrize(
    ("action", "restart", "fatal"),
    [
        ("FailJob", "OnFailure", True),
        ("Restart", "Never", False),
        ("Ignore", "Never", False),
        ("Count", "Never", True),
        ("Count", "OnFailure", False),
    ],
)
def test_a_rule_decides_before_the_restart_policy(action: str, restart: str, fatal: bool) -> None:
    job = with_rule(action, on_code(3), restart)
    assert is_fatal(job, job.groups[1], pod_of(job, "worker").failed(3).view()) is fatal
    assert is_fatal(job, job.groups[1], pod_of(job, "worker").failed(4).view()) is (restart == "Never")


@pytest.mark.parametrize(
    ("pod", "decides"),
    [
        (pod_of(NEVER, "worker").running().disrupted().deleting(), True),
        (pod_of(NEVER, "worker").exited(1).disrupted().deleting(), True),
        (pod_of(NEVER, "worker").failed(1).disrupted().deleting(), True),
        (pod_of(NEVER, "worker").exited(0).disrupted().deleting(), False),
        (pod_of(NEVER, "worker").succeeded().disrupted().deleting(), False),
        (pod_of(NEVER, "worker").disrupted().deleting(), True),  # no container of it ever ran
        (pod_of(NEVER, "worker").running().disrupted(), False),  # it may still succeed
    ],
)
def test_of_the_pods_that_the_cluster_takes_away_those_that_had_not_succeeded_have_failed(
    pod: Pod, decides: bool
) -> None:
    assert action_for(with_rule("Ignore", DISRUPTION), pod.view()) == ("Ignore" if decides else "")


def test_a_pod_that_a_user_deletes_has_not_failed() -> None:
    """Whatever its conditions are while it ends."""
    job = with_rule("FailJob", {"onPodConditions": [{"type": "Ready", "status": "False"}]})
    unready = pod_of(job, "worker").running().deleting()
    unready.change(lambda p: p["status"].update(conditions=[{"type": "Ready", "status": "False"}]))
    assert action_for(job, unready.view()) == ""
    assert find_failure(job, observed(job, [unready])) is None


@pytest.mark.parametrize(
    ("code", "container", "end"), [(3, "mxnet", ", and its container mxnet exited with 3"), (0, "", "")]
)
def test_the_failure_by_a_condition_names_the_container_that_failed_too(code: int, container: str, end: str) -> None:
    job = with_rule("FailJob", DISRUPTION)
    pod = pod_of(job, "worker").failed(code, message="of the program").disrupted()
    found = explain(job, pod.change(lambda p: p["status"].update(message="low on memory")).view())
    assert found == Failure(
        "PodFailurePolicy",
        f"pod digits-worker-0 has the condition DisruptionTarget{end}, for which "
        "spec.runPolicy.podFailurePolicy.rules[0] has the action FailJob: low on memory",
        "digits-worker-0",
        container,
        code or None,
        "low on memory",
    )


@pytest.mark.parametrize(("code", "container", "log"), [(3, "mxnet", "of mxnet"), (5, "sidecar", "of the pod")])
def test_the_failure_by_a_container_quotes_no_other_container(code: int, container: str, log: str) -> None:
    job = with_rule("FailJob", on_code(code))
    pod = pod_of(job, "worker").failed(3, message="of mxnet")
    ended = {"terminated": {"exitCode": 5, "reason": "Error", "message": "of the sidecar"}}
    pod.change(lambda p: p["status"]["containerStatuses"].append({"name": "sidecar", "state": ended}))
    found = explain(job, pod.change(lambda p: p["status"].update(message="of the pod")).view())
    assert (found.container, found.exit_code, found.log) == (container, code, log)


# --- the failure's message


def test_the_failure_of_a_container() -> None:
    pod = pod_of(NEVER, "worker", 1).failed(3, message="loss is NaN").view()
    message = f"container mxnet of pod {pod.name} exited with 3 (Error): loss is NaN"
    assert describe(pod) == Failure("Error", message, pod.name, "mxnet", 3, "loss is NaN")


def test_the_failure_of_a_pod_that_never_ran() -> None:
    pod = pod_of(NEVER, "worker").refused_by_node("OutOfcpu", "no room").view()
    assert describe(pod) == Failure("OutOfcpu", f"pod {pod.name} failed: OutOfcpu: no room", pod.name, log="no room")


def test_the_failure_of_an_evicted_pod_whose_program_exited_with_0() -> None:
    pod = pod_of(NEVER, "worker").failed(0, "Completed", "saved")
    pod.change(lambda p: p["status"].update(reason="Evicted", message="low on memory"))
    found = describe(pod.view())
    assert (found.reason, found.exit_code, found.log) == ("Evicted", None, "low on memory")
    assert found.message == f"pod {pod.view().name} failed: Evicted: low on memory"


@pytest.mark.parametrize(
    ("pod_reason", "container_reason", "expected", "words"),
    [
        ("", "Error", "Error", "last line"),
        ("", "", "Error", "last line"),
        ("", "OOMKilled", "OOMKilled", "last line"),
        ("Evicted", "Error", "Evicted", "low on memory\nlast line"),
        ("Evicted", "OOMKilled", "OOMKilled", "last line"),
    ],
)
def test_the_reason_of_the_pod_takes_precedence_over_the_containers(
    pod_reason: str, container_reason: str, expected: str, words: str
) -> None:
    pod = pod_of(NEVER, "worker").failed(137, container_reason, "last line")
    if pod_reason:
        pod.change(lambda p: p["status"].update(reason=pod_reason, message="low on memory"))
    found = describe(pod.view())
    assert (found.reason, found.log, found.exit_code) == (expected, words, 137)
    assert f"exited with 137 ({expected}): " in found.message


def test_the_message_quotes_the_end_of_a_long_log() -> None:
    lines = "\n".join(f"line {n}" for n in range(200))
    found = describe(pod_of(NEVER, "worker").failed(1, message=lines).view())
    assert found.log == lines
    assert found.message.endswith("line 198\nline 199")
    assert len(found.message) < 600


# --- backoffLimit


@pytest.mark.parametrize(
    ("held", "retries"),
    [({"worker-0": 2}, {"worker-0": 2}), (None, {}), ([], {}), ({"worker-0": "x"}, {}), ({"worker-0": None}, {})],
)
def test_retries_in_the_status(held: object, retries: dict[str, int]) -> None:
    assert retries_of(mxjob().status(retries=held).job()) == retries


# --- several ends


@pytest.mark.parametrize("policy", ["Never", "ExitCode"])
@pytest.mark.parametrize(
    ("ends", "named"),
    [
        ({"scheduler": 5, "worker": 3}, "worker"),
        ({"scheduler": 3, "worker": 5}, "scheduler"),
        ({"scheduler": 3, "worker": 3}, "scheduler"),  # then in the order of the types
    ],
)
def test_the_first_to_end_is_named(policy: str, ends: Mapping[str, float], named: str) -> None:
    job = mxjob().v1().workers(1).restart(policy).job()
    found = find_failure(job, observed(job, [pod_of(job, type_).failed(1, seconds=s) for type_, s in ends.items()]))
    assert found is not None
    assert found.pod == f"{job.name}-{named}-0"


@pytest.mark.parametrize(
    ("seconds", "code", "reason", "named"),
    [
        (0, 1, "OOMKilled", "worker"),
        (1, 137, "Error", "worker"),
        (2, 143, "Error", "worker"),
        (3, 137, "OOMKilled", "scheduler"),
        (0, 139, "Error", "worker"),  # in one second a signal comes first
        (1, 139, "Error", "scheduler"),  # of its own, as JAX's after the loss of a peer
        (0, 255, "Error", "scheduler"),  # mpirun's and ssh's
    ],
)
def test_a_kill_comes_before_a_failure_that_is_reported_shortly_before(
    seconds: int, code: int, reason: str, named: str
) -> None:
    """torchrun ends later than the process that the kernel killed."""
    job = mxjob().v1().workers(1).restart("Never").job()
    pods = [pod_of(job, "scheduler").failed(1), pod_of(job, "worker").failed(code, reason, seconds=seconds)]
    found = find_failure(job, observed(job, pods))
    assert found is not None
    assert found.pod == f"{job.name}-{named}-0"


def test_of_lost_elastic_workers_the_first_to_end_is_named() -> None:
    job = elastic()
    pods = [pod_of(job, "worker", i, framework=PYTORCH).failed(1, seconds=s) for i, s in ((0, 5), (1, 3))]
    found = find_failure(job, observed(job, pods))
    assert found is not None
    assert found.pod == "example-job-worker-1"


def test_a_pod_that_the_cluster_ended_comes_before_those_that_exited() -> None:
    job = mxjob().v1().workers(2).restart("Never").job()
    exited, refused = pod_of(job, "worker", 0).failed(1, seconds=-60), pod_of(job, "worker", 1).refused_by_node()
    found = find_failure(job, observed(job, [exited, refused]))
    assert found is not None
    assert found.reason == "OutOfcpu"


@pytest.mark.parametrize(
    ("type_", "seconds", "precedes"),
    [
        ("worker", -1, True),
        ("worker", 0, False),  # it may have failed because the scheduler ended
        ("worker", 1, False),
        ("tunertracker", -1, True),
        ("tunertracker", 0, True),  # it runs until something stops it
        ("tunertracker", 1, False),
    ],
)
def test_a_failure_before_the_end_of_the_success_target(type_: str, seconds: float, precedes: bool) -> None:
    job = mxjob().v1().workers(2).replicas("TunerTracker", 1).restart("Never").job()
    pods = observed(job, [pod_of(job, "scheduler").succeeded(), pod_of(job, type_).failed(137, seconds=seconds)])
    assert precedes_success(job, MXNET, pods, pods) is precedes


@pytest.mark.parametrize(
    "other",
    [
        pod_of(NEVER, "worker").succeeded(-1),
        pod_of(NEVER, "worker").failed(1, seconds=-1),  # in a list layout only the success target fails the job
        pod_of(NEVER, "worker").running(),
    ],
)
def test_what_does_not_fail_a_job_precedes_no_success(other: Pod) -> None:
    pods = observed(NEVER, [pod_of(NEVER, "scheduler").succeeded(), other])
    assert not precedes_success(NEVER, MXNET, pods, pods)


def test_a_success_whose_pod_is_gone_is_preceded_by_nothing() -> None:
    job = mxjob().v1().workers(1).restart("Never").job()
    pods = observed(job, [pod_of(job, "worker").failed(1, seconds=-60)])
    assert not precedes_success(job, MXNET, pods, pods)
