"""Which pods have failed, and whether the job fails with them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.pod_ends import has_failed, has_succeeded
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import end_order
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.exit_codes import (
    ExitCodeClass,
    classify_exit_code,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.pod_failure_policy import (
    Match,
    first_match,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.log_tail import IN_SENTENCE, log_tail
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.failure import Failure
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import FAILS_BY_TARGET, Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, ReplicaGroup
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import ContainerEnd, Observed, PodState
from ansible_collections.dljob.operator.plugins.module_utils.values.pod_failure_policy import (
    ACTION_COUNT,
    ACTION_FAIL_JOB,
)

_DISRUPTION = "the cluster deletes pod {} (condition DisruptionTarget: a drain, a preemption or a lost node)"


def may_be_culprit(pod: PodState) -> bool:
    """Whether the status may name ``pod`` as the one that failed the job: cleanPodPolicy Running then keeps it.

    It keeps a batch Job with its pod, and a Job that has not failed would go on in a job that has.
    """
    return pod.batch_job is None or has_failed(pod)


def rule_for(job: DLJob, pod: PodState) -> Match | None:
    """The rule of the job's podFailurePolicy that decides about ``pod``; ``None`` without a failure or such a rule.

    A pod that is being deleted has failed if the cluster takes it away: it leaves no other trace.
    """
    if not job.run_policy.failure_rules:
        return None
    if not (_is_taken(pod) if pod.deleting else has_failed(pod)):
        return None
    return first_match(job.run_policy.failure_rules, pod)


def _is_taken(pod: PodState) -> bool:
    """Whether the cluster takes ``pod``, which is being deleted, away before its program has succeeded."""
    return pod.disrupted and pod.phase != "Succeeded" and not (pod.ended is not None and pod.ended.code == 0)


def action_for(job: DLJob, pod: PodState) -> str:
    """The action of that rule, "" without one."""
    match = rule_for(job, pod)
    return match.action if match else ""


def find_failure(job: DLJob, observed: Observed, completed: Mapping[str, set[int]] | None = None) -> Failure | None:
    """The failure that ends ``job``, or ``None`` while it can still succeed.

    Of several fatal pods it is that of the first to end, by :mod:`.end_order`: the others may have failed because of
    it. A permanent failure of an elastic replica does not fail the job. Where the elastic type is the success target,
    the job fails once all its replicas have ended without success of the job. ``observed`` has the pods of the
    :func:`.success.unfinished` replicas; ``completed`` are the others.
    """
    for pod in observed.pods:
        match = rule_for(job, pod)
        if match and match.action == ACTION_FAIL_JOB:
            return _failure_by_rule(pod, match)
    first = min(_fatal_pods(job, observed), key=end_order.rank_of, default=None)
    if first is not None and first.deleting:
        return disruption(first)
    if first is not None:
        return describe(first)
    lost = lost_pods(job, observed)
    if not lost or job.success_target.type != job.elastic_type:
        return None
    ended = {p.index for p in lost}.union((completed or {}).get(job.elastic_type.lower(), ()))
    elastic = job.group(job.elastic_type)
    return describe(min(lost, key=end_order.rank_of)) if elastic and ended.issuperset(range(elastic.replicas)) else None


def precedes_success(job: DLJob, framework: Framework, observed: Observed, unfinished: Observed) -> bool:
    """Whether a replica failed for good before the success target of ``job``, which has succeeded, ended.

    mpirun of Open MPI 5 exits with 0 after it has lost a worker. Without this rule the outcome would depend on which of
    the two ends a reconcile sees first. The kubelets' clocks give the times, to the second. Within the same second only
    the failure of a long-running type counts: other processes may fail because the success target has just ended.
    ``unfinished`` has the pods of the replicas that have not succeeded.
    """
    target = (pod.ended for pod in observed.pods_of(job.success_target.type) if has_succeeded(pod))
    success = max((ended.finished_at for ended in target if ended is not None), default="")
    return any(_ended_before(pod, success, framework) for pod in _fatal_pods(job, unfinished))


def _ended_before(pod: PodState, time: str, framework: Framework) -> bool:
    if pod.deleting or pod.ended is None or pod.ended.code == 0:
        return False
    type_ = framework.type_named(pod.type)
    counts_same_second = type_ is not None and type_.long_running
    return pod.ended.finished_at < time or (counts_same_second and pod.ended.finished_at == time)


def _fatal_pods(job: DLJob, observed: Observed) -> list[PodState]:
    """The pods with which ``job`` fails, in the order of its types; none of the elastic type."""
    return [
        pod
        for group in job.groups
        if group.type != job.elastic_type
        for pod in observed.pods_of(group.type)
        if (_is_lost_for_good(job, group, pod) if pod.deleting else is_fatal(job, group, pod))
    ]


def lost_pods(job: DLJob, observed: Observed) -> list[PodState]:
    """The permanently failed pods of the elastic type. The operator does not restart them, and the others go on."""
    group = job.group(job.elastic_type)
    if group is None:
        return []
    return [p for p in observed.pods_of(group.type) if not p.deleting and is_fatal(job, group, p)]


def is_fatal(job: DLJob, group: ReplicaGroup, pod: PodState) -> bool:
    """Whether ``pod`` has failed permanently: by a rule of the job's podFailurePolicy, or else by the restart policy of
    its ``group`` and the flavor's ``fails_by``."""
    action = action_for(job, pod)
    if action not in ("", ACTION_COUNT):
        return action == ACTION_FAIL_JOB
    if job.flavor.fails_by == FAILS_BY_TARGET:
        # the replicas of a local job are independent, so the result of each counts
        is_target = group.type == job.success_target.type and (
            pod.index == job.success_target.index or job.mode == c.MODE_LOCAL
        )
        if not is_target:
            return False
        if pod.restarted_by_rule:
            return False
        # the last termination counts even where the kubelet, by the template's OnFailure, has restarted the container
        if pod.ended is not None and pod.ended.code != 0 and not pod.disrupted:
            return classify_exit_code(pod.ended, job.flavor.exit_codes) is ExitCodeClass.PERMANENT
        return False
    if not has_failed(pod):
        return False
    if pod.batch_job is not None:
        return True  # the Job has used up its retries
    if group.restart_policy == c.RESTART_EXIT_CODE:
        # as in training-operator, only the code of the framework's container counts, not that of an init container
        if pod.disrupted or pod.ended is None or pod.ended_elsewhere:
            return False
        return classify_exit_code(pod.ended, job.flavor.exit_codes) is ExitCodeClass.PERMANENT
    return group.restart_policy == c.RESTART_NEVER


def _is_lost_for_good(job: DLJob, group: ReplicaGroup, pod: PodState) -> bool:
    """Whether the cluster takes away ``pod``, which is being deleted and has begun, from a replica under Never.

    As in training-operator, which counts a running pod that is being deleted as failed. Here a user may delete one:
    then the replica gets a new pod. A batch Job replaces its own, and ``restartScope: Job`` restarts the whole job.
    """
    return (
        group.restart_policy == c.RESTART_NEVER
        and job.flavor.fails_by != FAILS_BY_TARGET
        and job.run_policy.restart_scope != c.RESTART_SCOPE_JOB
        and pod.batch_job is None
        and pod.phase in ("Running", "Failed")
        and _is_taken(pod)
        and action_for(job, pod) in ("", ACTION_COUNT)
    )


def disruption(pod: PodState) -> Failure:
    """The failure of a pod that the cluster takes away."""
    return Failure(c.REASON_DISRUPTED, _DISRUPTION.format(pod.display_name), pod.name)


def describe(pod: PodState) -> Failure:
    """The failure of ``pod`` in one sentence: pod, container, exit code, reason and the end of the program's log.

    The reason of the pod (Evicted, DeadlineExceeded) takes precedence over the container's reason, which is then only
    Error.
    """
    if pod.batch_job and pod.reason == c.REASON_BACKOFF and pod.last_failure:
        return _out_of_retries(pod.last_failure)
    if pod.ended is None or pod.ended.code == 0:
        reason = pod.reason or "Error"
        text = _with_device(f"{pod.subject} failed: {reason}", pod.device)
        return _with_log_tail(Failure(reason, text, pod.pod_name, log=pod.message))
    reason = pod.ended.reason if pod.ended.reason == c.REASON_OOM else pod.reason or pod.ended.reason or "Error"
    logs = [pod.message, pod.ended.message] if reason == pod.reason else [pod.ended.message or pod.message]
    return _with_log_tail(
        Failure(
            reason,
            _with_device(_exit(pod.container, pod.display_name, pod.ended.code, reason), pod.device),
            pod.name,
            pod.container,
            pod.ended.code,
            "\n".join(filter(None, logs)),
        )
    )


def describe_end(end: ContainerEnd) -> Failure:
    """A container that failed, in one sentence like :func:`describe`; its pod may be gone."""
    reason = end.ended.reason or "Error"
    text = _with_device(_exit(end.container, end.pod, end.ended.code, reason), end.device)
    return _with_log_tail(Failure(reason, text, end.pod, end.container, end.ended.code, end.ended.message))


def _exit(container: str, pod: str, code: int, reason: str) -> str:
    return f"container {container} of pod {pod} exited with {code} ({reason})"


def _with_device(text: str, device: str) -> str:
    return f"{text}, and its {device}" if device else text


def _out_of_retries(last: ContainerEnd) -> Failure:
    """A batch Job has used up its retries: its own message says no more than that, so the program's takes its place.

    Under ``OnFailure`` the Job controller deletes the pod, and what ``last`` has was kept from before.
    """
    failure = describe_end(dataclasses.replace(last, ended=dataclasses.replace(last.ended, message="")))
    reason = failure.reason if failure.reason == c.REASON_OOM else c.REASON_BACKOFF
    text = f"{failure.message}, and its batch Job has no retries left"
    return _with_log_tail(dataclasses.replace(failure, reason=reason, message=text, log=last.ended.message))


def explain(job: DLJob, pod: PodState) -> Failure:
    """:func:`describe`, with the rule of podFailurePolicy that decides about ``pod``."""
    match = rule_for(job, pod)
    return _failure_by_rule(pod, match) if match else describe(pod)


def _failure_by_rule(pod: PodState, match: Match) -> Failure:
    rule = f"for which spec.runPolicy.podFailurePolicy.rules[{match.index}] has the action {match.action}"
    if match.container is None:
        type_, status = match.condition or ("", "")
        condition = type_ if status == "True" else f"{type_}={status}"
        end = (
            f", and its container {pod.container} exited with {pod.ended.code}" if pod.ended and pod.ended.code else ""
        )
        message = f"{_with_device(f'{pod.subject} has the condition {condition}{end}', pod.device)}, {rule}"
        code = pod.ended.code if end and pod.ended else None
        container, log = pod.container if end else "", pod.message
    else:
        container, code = match.container.name, match.container.code
        reason = f" ({match.container.reason})" if match.container.reason else ""
        text = f"container {container} of pod {pod.display_name} exited with {code}{reason}"
        message = f"{_with_device(text, pod.device)}, {rule}"
        log = pod.ended.message if pod.ended and container == pod.container else pod.message
    return _with_log_tail(Failure(c.REASON_FAILURE_POLICY, message, pod.pod_name, container, code, log))


def _with_log_tail(failure: Failure) -> Failure:
    tail = log_tail(failure.log, IN_SENTENCE)
    return dataclasses.replace(failure, message=f"{failure.message}: {tail}") if tail else failure
