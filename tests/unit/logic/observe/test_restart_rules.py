"""Restarts by restartPolicyRules and RestartAllContainers, with pod statuses as a kubelet 1.37.2 has written them."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.pod_ends import (
    has_failed,
    has_succeeded,
    is_done,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import crash_loops, losses
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.backoff_limit import exceeded
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.failure import find_failure
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState
from support.builders import MXJob, Pod, at, mxjob, observed, pod_of, stamp

Resource = dict[str, Any]

IN_PLACE = "The container is removed because RestartAllContainers in place"
MADE_UP = {"terminated": {"exitCode": 137, "reason": "RestartingAllContainers", "message": IN_PLACE}}
"""The kubelet writes this for a container that it has removed; it has no times."""
WAITS = {"waiting": {"reason": "RestartingAllContainers", "message": IN_PLACE}}
RUNS = {"running": {"startedAt": stamp(2)}}
STARTS, STARTED = ({"type": "AllContainersRestarting", "status": status} for status in ("True", "False"))


def end(code: int) -> Resource:
    reason = "Error" if code else "Completed"
    return {"terminated": {"exitCode": code, "reason": reason, "message": "lost a peer", "finishedAt": stamp(1)}}


def rule(action: str, operator: str = "In", *values: int) -> Resource:
    return {"action": action, "exitCodes": {"operator": operator, "values": list(values) or [42]}}


RESTART, RESTART_ALL = rule("Restart"), rule("RestartAllContainers")


def job(flavor: str = "v1", policy: str = "Never", limit: int = 3) -> MXJob:
    return mxjob().flavor(flavor).workers(2).restart(policy).run_policy(backoffLimit=limit)


def replica(
    state: Resource,
    last: Resource | None = None,
    rules: tuple[Resource, ...] = (RESTART,),
    conditions: tuple[Resource, ...] = (),
    own: str = "Never",
    of: MXJob | None = None,
    type_: str = "scheduler",
    index: int = 0,
) -> Pod:
    """A pod that Running is the phase of, whose container has been restarted once where there is a ``last`` end."""

    def change(pod: Resource) -> None:
        container = pod["spec"]["containers"][0]
        container |= {"restartPolicy": own} if own else {}
        container |= {"restartPolicyRules": list(rules)} if rules else {}
        status = {"name": "mxnet", "restartCount": 1 if last else 0, "state": state, "lastState": last or {}}
        pod["status"] = {"phase": "Running", "conditions": list(conditions), "containerStatuses": [status]}

    return pod_of((of or job()).job(), type_, index).change(change)


def ended(pod: Pod) -> int | None:
    found = pod.view().ended
    return found.code if found else None


@pytest.mark.parametrize(
    ("pod", "failed", "code"),
    [
        pytest.param(replica(end(42)), False, 42, id="Restart"),
        pytest.param(
            replica(end(42), rules=(RESTART_ALL,), conditions=(STARTS,)), False, 42, id="RestartAllContainers"
        ),
        pytest.param(replica(end(3)), True, 3, id="a code without a rule"),
        pytest.param(replica(end(3), rules=(rule("Restart", "NotIn"),)), False, 3, id="NotIn"),
        pytest.param(replica(end(42), rules=(rule("Restart", "NotIn"),)), True, 42, id="not NotIn"),
        pytest.param(replica(end(42), rules=(rule("Stop"), RESTART)), True, 42, id="the first rule decides"),
        pytest.param(replica(end(42), rules=(rule("Restart", "Like"), RESTART)), False, 42, id="an unknown operator"),
        pytest.param(replica(end(42), rules=()), True, 42, id="no rule"),
        pytest.param(replica(end(3), rules=(), own="OnFailure"), False, 3, id="a policy of its own"),
        pytest.param(replica(end(3), rules=(), own="Never", of=job(policy="OnFailure")), True, 3, id="a stricter one"),
        pytest.param(replica(end(143), rules=(), conditions=(STARTS,)), False, 143, id="the kubelet has stopped it"),
        pytest.param(replica(WAITS, MADE_UP, (RESTART_ALL,), (STARTED,)), False, None, id="removed"),
        pytest.param(replica(RUNS, MADE_UP, (RESTART_ALL,), (STARTED,)), False, None, id="it runs again"),
        pytest.param(replica(MADE_UP, None, (RESTART_ALL,), (STARTS,)), False, None, id="it could not be located"),
        pytest.param(replica(RUNS, end(42)), False, 42, id="it runs again, alone"),
        pytest.param(replica(end(3), MADE_UP, (RESTART_ALL,), (STARTED,)), True, 3, id="it fails later"),
    ],
)
def test_which_end_is_the_replicas(pod: Pod, failed: bool, code: int | None) -> None:
    assert (has_failed(pod.view()), ended(pod)) == (failed, code)


def test_a_pod_that_has_ended_restarts_nothing() -> None:
    pod = replica(end(42)).change(lambda one: one["status"].update(phase="Failed"))
    assert has_failed(pod.view())
    assert not pod.view().is_active


@pytest.mark.parametrize(
    ("pod", "done"),
    [
        pytest.param(replica(end(0)), True, id="it succeeds"),
        pytest.param(replica(end(0), MADE_UP, (RESTART_ALL,), (STARTED,)), True, id="it succeeds after a restart"),
        pytest.param(replica(end(0), rules=(), conditions=(STARTS,)), False, id="it obeys the kubelet, which stops it"),
        pytest.param(replica(RUNS, end(0), rules=(), conditions=(STARTED,)), False, id="it runs again"),
        pytest.param(replica(end(0), rules=(rule("Restart", "In", 0),)), False, id="a rule about 0"),
        pytest.param(replica(RUNS, end(0), rules=(rule("Restart", "In", 0),)), False, id="it runs again by that rule"),
    ],
)
def test_which_exit_with_0_is_a_success(pod: Pod, done: bool) -> None:
    assert (has_succeeded(pod.view()), is_done(pod.view())) == (done, done)


def test_under_always_an_exit_with_0_is_one_though_the_container_runs_again() -> None:
    assert has_succeeded(replica(RUNS, end(0), rules=(), own="Always").view())


@pytest.mark.parametrize("flavor", ["v1", "v1alpha1", "fioravanzo", "mpba"])
@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
@pytest.mark.parametrize(
    ("state", "last", "rules", "conditions"),
    [
        (end(42), None, (RESTART,), ()),
        (RUNS, end(42), (RESTART,), ()),
        (end(42), None, (RESTART_ALL,), (STARTS,)),
        (WAITS, MADE_UP, (RESTART_ALL,), (STARTED,)),
        (RUNS, MADE_UP, (RESTART_ALL,), (STARTED,)),
    ],
    ids=["ended", "runs again", "all end", "all wait", "all run again"],
)
def test_no_step_of_a_restart_fails_the_job(
    flavor: str, policy: str, state: Resource, last: Resource | None, rules: Any, conditions: Any
) -> None:
    of = job(flavor, policy)
    pod = replica(state, last, rules, conditions, of=of)
    assert find_failure(of.job(), observed(of.job(), [pod])) is None
    assert pod.view().is_active


@pytest.mark.parametrize(
    ("pod", "count"),
    [
        (replica(end(42), rules=(RESTART_ALL,), conditions=(STARTS,)), 0),
        (replica(WAITS, MADE_UP, (RESTART_ALL,), (STARTED,)), 1),
        (replica(RUNS, MADE_UP, (RESTART_ALL,), (STARTED,)), 1),
        (replica(RUNS, end(42)), 1),
    ],
    ids=["it ends", "it waits", "it runs", "it runs, alone"],
)
def test_a_restart_counts_once(pod: Pod, count: int) -> None:
    made = job(limit=0).job()
    assert pod.view().restarts == count
    assert bool(exceeded(made, {}, [pod.view()])) is bool(count)


def test_the_report_of_restarts_of_which_no_exit_code_is_left() -> None:
    found = exceeded(job(limit=0).job(), {}, [replica(RUNS, MADE_UP, (RESTART_ALL,), (STARTED,)).view()])
    assert found is not None
    assert (found.pod, found.container, found.exit_code) == ("digits-scheduler-0", "", None)
    assert found.message == (
        "the job's replicas ended 1 times with an error, spec.runPolicy.backoffLimit allows 0 restarts; "
        "the kubelet has restarted pod digits-scheduler-0 in place (restartCount 1)"
    )


def test_the_made_up_end_is_no_loss() -> None:
    """It has no time, so each reconcile would find another one, and write it."""
    of = job()
    made = of.job()
    pods = [
        replica(RUNS, MADE_UP, (RESTART_ALL,), (STARTED,), of=of, type_="worker", index=index) for index in range(2)
    ]
    seen = observed(made, pods)
    assert losses.find(made, seen, seen, {}, at(9)) == losses.NONE


def test_the_end_before_it_is_one_and_others_may_follow() -> None:
    of = job()
    made = of.job()
    first = replica(end(42), rules=(RESTART_ALL,), conditions=(STARTS,), of=of, type_="worker")
    seen = observed(made, [first, replica(end(42), of=of, type_="worker", index=1)])
    found = losses.find(made, seen, seen, {}, at(9)).last
    assert found is not None
    assert (found.replica, dict(found.consequences)) == ("worker-0", {"worker-1": 0})
    assert found.message.endswith("exited with 42 (Error): lost a peer")


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        (replica(end(42)), "back-off after a failure: container mxnet of pod digits-scheduler-0 exited with 42"),
        (replica(end(3)), ""),
        (replica(end(3), rules=(), own="OnFailure"), "back-off after a failure: container mxnet of pod"),
        (replica(end(3), rules=(), own="Never", of=job(policy="OnFailure")), ""),
        (replica(WAITS, MADE_UP, (RESTART_ALL,), (STARTED,)), ""),
    ],
    ids=["a rule", "no rule", "a policy of its own", "a stricter one", "all wait"],
)
def test_the_reason_meanwhile(pod: Pod, said: str) -> None:
    view = pod.view()
    found = crash_loops.first(Observed((view,)), {})
    assert found.startswith(said)
    assert bool(found) is bool(said)
    assert view.waiting == "", "it does not wait for something"


def test_the_failure_before_a_restart_of_all_is_not_the_last_one() -> None:
    """A batch Job that runs a replica keeps the last failure of its pods."""
    views: list[PodState] = [
        replica(end(0), MADE_UP, (RESTART_ALL,), (STARTED,)).view(),
        replica(MADE_UP, None, (RESTART_ALL,), (STARTS,)).view(),
    ]
    assert [one.last_failure for one in views] == [None, None]
    for pod in (
        replica(end(42), MADE_UP, (RESTART_ALL,), (STARTS,)),
        replica(MADE_UP, end(42), (RESTART_ALL,), (STARTS,)),
    ):
        kept = pod.view().last_failure
        assert kept is not None
        assert kept.ended.code == 42


@pytest.mark.parametrize("state", [{"running": {"startedAt": stamp(2)}}, WAITS], ids=["runs", "waits"])
def test_a_pod_whose_init_containers_run_again_does_not_wait_for_its_start(state: Resource) -> None:
    """Its phase is Pending meanwhile, and its condition Initialized stays True."""

    def change(made: Resource) -> None:
        init = {"name": "fetch", "restartCount": 1, "state": state, "lastState": MADE_UP}
        conditions = [STARTED, {"type": "Initialized", "status": "True"}]
        made["status"] |= {"phase": "Pending", "conditions": conditions, "initContainerStatuses": [init]}
        made["spec"]["nodeName"] = "n1"

    waits = {"waiting": {"reason": "PodInitializing"}}
    view = replica(waits, MADE_UP, (RESTART_ALL,)).change(change).view()
    assert (view.pending_since, view.unstarted_since, view.waiting) == ("", "", "")
    assert (view.is_active, view.has_run) == (True, True)


def test_a_malformed_rule_is_none() -> None:
    pod = replica(end(42), rules=({"action": "Restart"}, {"action": "Restart", "exitCodes": None}))
    assert has_failed(pod.view())
