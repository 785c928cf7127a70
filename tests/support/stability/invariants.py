"""What must hold at every write of the operator, whatever has happened before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import restart_scope
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import completed as completed_
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import is_finished
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import (
    REASON_BACKOFF,
    REASON_DISRUPTED,
    REASON_FAILURE_POLICY,
    REASON_REPLICA_BACKOFF,
    REASON_RESTARTS_WITHIN,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework

from support.builders import stamp
from support.stability import policies
from support.stability.api_server import Write
from support.stability.state import Pod, State, Violation, read_status

if TYPE_CHECKING:
    from support.stability.reconciler import Planned

Status = Mapping[str, Any]


WITHOUT_A_RESULT = ("scheduler", "server")
"""The types of the scenarios that only coordinate others."""


def require(holds: bool, text: str) -> None:
    if not holds:
        raise Violation(text)


def check_created(planned: Planned, framework: Framework, state: State, writes: tuple[Write, ...]) -> None:
    """A reconcile with the current observation ``state`` creates only pods of ranks that have none, of types that
    wait for no other type, and of an attempt of the whole job only once the pods of earlier attempts are gone."""
    created: list[Pod] = [one for what, one in writes if what == "pod"]
    if not created:
        return
    ranks = [pod.rank for pod in created]
    require(len(ranks) == len(set(ranks)), f"two pods of one rank are created: {ranks}")
    twice = sorted({pod.rank for pod in state.pods} & set(ranks))
    require(not twice, f"a second pod of a rank is created: {twice}")
    status = read_status(state.status)
    require(not is_finished(status, state.generation, is_queued=False), "a finished job gets a pod")
    _check_start_order(planned, framework, created)
    _check_beginning(planned, state, created)


def _check_start_order(planned: Planned, framework: Framework, created: list[Pod]) -> None:
    status = planned.plan.status or planned.job.status
    done = completed_.read(status.get("completed"))
    held = policies.held_back(planned.job, framework, planned.of_attempt, done)
    early = sorted({pod.type for pod in created} & {type_.lower() for type_ in held})
    require(not early, f"pods of {early} are created before the types that they wait for: {held}")


def _check_beginning(planned: Planned, state: State, created: list[Pod]) -> None:
    if restart_scope.applies_to(planned.job):
        left = {pod.name for pod in state.pods if pod.attempt < created[0].attempt}
    else:
        left = {
            pod.name
            for pod in state.pods
            for new in created
            if pod.hash.partition("-")[0] == new.hash.partition("-")[0]
            and policies.attempt_of(pod.hash, pod.hash.partition("-")[0])
            < policies.attempt_of(new.hash, new.hash.partition("-")[0])
        }
    require(not left, f"pods of a new attempt of the job are created beside {sorted(left)} of an earlier one")


def check_deleted(planned: Planned, state: State) -> None:
    """A reconcile with the current observation ``state`` deletes a failed pod only after it has counted the failure, and
    a succeeded one only after it has recorded the success."""
    deleted = {one[1] for what, one in planned.writes if what == "delete" and one[0] == "Pod"}
    status = read_status(state.status)
    if not deleted or planned.job.run_policy.suspend or is_finished(status, state.generation, is_queued=False):
        return
    if restart_scope.applies_to(planned.job):
        return  # check_status compares its attempt with its count
    for pod in planned.current:
        if pod.name in deleted and policies.counter(planned.job, pod):
            counted = _failures(status).get(f"{pod.type}-{pod.index}", 0)
            require(counted > pod.attempt, f"{pod.name} is deleted, and its failure is not counted")


def check_status(planned: Planned, state: State, after: State) -> None:
    """What a status write may change."""
    old, new = read_status(state.status), read_status(after.status)
    if is_finished(old, state.generation, is_queued=False):
        require(new.get("state") == old.get("state"), f"the outcome {old.get('state')} became {new.get('state')}")
        return
    _check_evidence(planned, old, new)
    if new.get("state") == "Succeeded":
        return
    if _is_ending(planned, new):
        _check_ending(planned, new)
    if not planned.job.run_policy.suspend:
        _check_failure(planned, old, new)
    if new.get("state") == "Failed" or old.get("specHash") != new.get("specHash"):
        return
    _check_completed(planned, old, new)
    if restart_scope.applies_to(planned.job):
        _check_attempt(planned, old, new)
    else:
        _check_retries(planned, old, new)


def _check_failure(planned: Planned, old: Status, new: Status) -> None:
    """A job fails by a rule, or because a limit is exceeded, exactly if a pod or a count says so."""
    job, policy = planned.job, planned.job.run_policy
    if not job.status.get("specHash"):
        return  # a reconcile that has not read the job's progress
    done = completed_.read(new.get("completed"))
    counting = [pod for pod in planned.of_attempt if not (_is_ending(planned, new) and pod.type in WITHOUT_A_RESULT)]
    ruled = [
        pod
        for pod in counting
        if policies.action(job, pod) == "FailJob" and pod.index not in done.get(pod.type, ())
        if not policies.is_consequence(new, pod)
    ]
    fatal = [pod.name for pod in ruled if not policies.may_follow(new, pod)]
    reason = (new.get("failure") or {}).get("reason") if new.get("state") == "Failed" else None
    require(bool(ruled) or reason != REASON_FAILURE_POLICY, "the job has failed by a rule that matches no pod")
    require(not fatal or reason is not None, f"the job goes on, and a rule fails it for {fatal}")
    lost = [pod.name for pod in counting if policies.is_lost(job, pod) and pod.index not in done.get(pod.type, ())]
    is_over = new.get("state") in ("Failed", "Succeeded")
    require(not lost or is_over, f"the job goes on, and the cluster deletes {lost}, which may not start again")
    if _is_ending(planned, new):
        return  # the success comes before the limits
    in_place = {f"{pod.type}-{pod.index}": pod.restarts for pod in planned.of_attempt if not pod.deleting}
    retries = Counter(new.get("retries", {}))
    if new.get("state") == "Failed":
        retries += _last_failures(planned, new)
    of_replicas = Counter(in_place)
    of_replicas.update({name: count for name, count in retries.items() if name != restart_scope.KEY})
    made = Counter(retries)
    for pod in planned.of_attempt:
        made[f"{pod.type}-{pod.index}"] += pod.restarts  # those of a pod that is deleted are still there
    forgiven = {name: min(count, made[name]) for name, count in new.get("consequentRestarts", {}).items()}
    of_replicas.subtract(forgiven)
    most = max((count for name, count in of_replicas.items() if name in _replicas(planned)), default=0)
    limit, limit_of_all = policy.max_restarts_per_replica, policy.backoff_limit
    is_over = limit is not None and most > limit
    require(is_over or reason != REASON_REPLICA_BACKOFF, f"no replica has exceeded its limit {limit}: {of_replicas}")
    require(not is_over or reason is not None, f"a replica has exceeded its limit {limit}: {of_replicas}")
    total = retries.total() + sum(pod.restarts for pod in planned.of_attempt) - sum(forgiven.values())
    is_over = limit_of_all is not None and total > limit_of_all
    require(is_over or reason != REASON_BACKOFF, f"the limit {limit_of_all} is not exceeded: {retries}")
    require(not is_over or reason is not None, f"the limit {limit_of_all} is exceeded: {retries}")
    _check_restarts_within(planned, old, new, reason)


def _check_restarts_within(planned: Planned, old: Status, new: Status, reason: str | None) -> None:
    """The status has the recent restarts. Those of a job that goes on are within its limit, unless that was lowered."""
    within, recent = planned.job.run_policy.restarts_within, new.get("recentRestarts") or {}
    require(within is not None or not recent, f"there is no limit for {recent}")
    times, before = recent.get("times", ()), (old.get("recentRestarts") or {}).get("times", ())
    is_over = within is not None and len(times) > within.count
    require(is_over or reason != REASON_RESTARTS_WITHIN, f"the limit {within} is not exceeded: {recent}")
    is_new = bool(Counter(times) - Counter(before))
    require(not (is_over and is_new) or reason is not None, f"the limit {within} is exceeded: {recent}")


def _last_failures(planned: Planned, new: Status) -> Counter[str]:
    """The failures that count for the limits, and that no restart follows: the job has ended."""
    recorded, found = _failures(new), Counter[str]()
    for pod in planned.of_attempt:
        field, name = policies.counter(planned.job, pod), f"{pod.type}-{pod.index}"
        if field == "job" or (field == "retries" and restart_scope.applies_to(planned.job)):
            found[restart_scope.KEY] = 1
        elif field == "retries" and recorded.get(name, 0) <= pod.attempt:
            found[name] = 1
    return found


def _replicas(planned: Planned) -> set[str]:
    return {f"{group.type.lower()}-{index}" for group, index in planned.job.tasks()}


def _check_evidence(planned: Planned, old: Status, new: Status) -> None:
    """Only pods of the present spec decide that a replica or the job has succeeded, or which pod has failed it. What
    happens to a pod that is being deleted does not count, unless a rule is about it, or the cluster deletes it and its
    replica may not start again."""
    current = planned.current
    pods = [pod for pod in current if not pod.deleting]
    exited = {(pod.type, pod.index) for pod in pods if pod.ended and pod.ended.code == 0 and not pod.disrupted}
    before, after = completed_.read(old.get("completed")), completed_.read(new.get("completed"))
    for type_, indexes in after.items():
        known = before.get(type_, set()) if old.get("specHash") in (None, new.get("specHash")) else set()
        unproven = {index for index in indexes - known if (type_, index) not in exited}
        require(not unproven, f"{type_} {sorted(unproven)} counts as completed, and no such pod has succeeded")
    target = planned.job.success_target.type.lower()
    if new.get("state") == "Succeeded":
        ranks = exited | {(target, index) for index in after.get(target, ())}
        require(any(type_ == target for type_, _ in ranks), "the job has succeeded, and its success target has not")
    failure = new.get("failure") or {}
    if new.get("state") == "Failed" and "pod" in failure:
        guilty = {pod.name for pod in pods if not (pod.disrupted and failure["reason"] == REASON_BACKOFF)}
        if failure["reason"] == REASON_FAILURE_POLICY:
            guilty = {pod.name for pod in current if policies.action(planned.job, pod) == "FailJob"}
        if failure["reason"] == REASON_DISRUPTED:
            guilty = {pod.name for pod in current if policies.is_lost(planned.job, pod)}
        require(failure["pod"] in guilty, f"the job has failed by {failure['pod']}, which did not fail by itself")


def _is_ending(planned: Planned, new: Status) -> bool:
    """Whether the success target has succeeded, and the job only waits for the ends of others."""
    return not planned.job.run_policy.suspend and "has exited with 0: waiting" in new.get("reason", "")


def _check_ending(planned: Planned, new: Status) -> None:
    """A job waits for replicas that run and whose failure would count, and meanwhile starts and ends none."""
    job = planned.job
    target = job.success_target.type.lower()
    require(bool(completed_.read(new.get("completed")).get(target)), "the job is ending, and its target has not ended")
    require(not planned.writes, f"the job is ending, and the operator writes {planned.writes}")
    has_rule = any(rule.action == "FailJob" for rule in job.run_policy.failure_rules)
    policed = {group.type.lower() for group in job.groups if has_rule or group.restart_policy in ("Never", "ExitCode")}
    counting = policed - set(WITHOUT_A_RESULT)
    runs = [pod for pod in planned.of_attempt if pod.type in counting and pod.is_active and not pod.deleting]
    require(bool(runs) and job.flavor.fails_by == "any", "the job waits for the end of no replica")
    ends = [pod.ended.finished_at for pod in planned.of_attempt if pod.type == target and pod.ended]
    late = [end for end in ends if end <= stamp(-10)]
    require(len(late) < len(ends), f"the job waits, and its target ended at {ends}")


def _check_completed(planned: Planned, old: Status, new: Status) -> None:
    """A completed replica stays completed, within one spec and attempt, unless the job was suspended or shrank."""
    if planned.job.run_policy.suspend or old.get("attempt") != new.get("attempt"):
        return
    sizes = {group.type.lower(): group.replicas for group in planned.job.groups}
    after = completed_.read(new.get("completed"))
    for type_, indexes in completed_.read(old.get("completed")).items():
        lost = {index for index in indexes if index < sizes.get(type_, 0)} - after.get(type_, set())
        require(not lost, f"the completion of {type_} {sorted(lost)} is forgotten")
    for type_, indexes in after.items():
        surplus = {index for index in indexes if index >= sizes.get(type_, 0)}
        require(not surplus, f"{type_} {sorted(surplus)} counts as completed, and the job has no such replica")
    for pod in planned.of_attempt:
        if pod.phase == "Succeeded" and not pod.deleting:
            require(pod.index in after.get(pod.type, ()), f"the success of {pod.name} is not recorded")


def _check_retries(planned: Planned, old: Status, new: Status) -> None:
    """The counts of the replicas and of the restarts of the whole job grow by failures of present pods only."""
    before, after = _failures(old), _failures(new)
    current = planned.current
    counters = {pod.uid: policies.counter(planned.job, pod) for pod in current}
    for replica in {*before, *after} - {restart_scope.KEY}:
        increase = after.get(replica, 0) - before.get(replica, 0)
        require(increase >= 0, f"the retries of {replica} decrease: {before} to {after}")
        if not increase:
            continue
        grown = [f for f in FIELDS if new.get(f, {}).get(replica, 0) != old.get(f, {}).get(replica, 0)]
        pods = [pod for pod in current if f"{pod.type}-{pod.index}" == replica and [counters[pod.uid]] == grown]
        counted = [pod.attempt + 1 for pod in pods]
        require(after[replica] in counted, f"the retries of {replica} become {after[replica]}, its failures {counted}")
    begun = new.get("attempt", 0) - old.get("attempt", 0)
    increase = after.get(restart_scope.KEY, 0) - before.get(restart_scope.KEY, 0)
    require(increase == begun and begun in (0, 1), f"attempt {begun} more, restarts of the job {increase} more")
    completed = completed_.read(old.get("completed"))
    due = [pod.name for pod in current if counters[pod.uid] == "job" and pod.index not in completed.get(pod.type, ())]
    due = [] if planned.job.run_policy.suspend or _is_ending(planned, new) else due
    within, recent = planned.job.run_policy.restarts_within, new.get("recentRestarts") or {}
    by_limit = within is not None and within.action == "RestartJob" and set(recent) == {"jobRestarted"}
    is_due = bool(due) or (by_limit and begun == 1)
    require(begun == is_due, f"attempt {begun} more, and a rule restarts the job for {due}")


FIELDS = ("retries", "ignoredRetries")


def _failures(status: Status) -> dict[str, int]:
    """The recorded failures of each replica, with those that a rule of podFailurePolicy ignores for the limits."""
    counts: Counter[str] = Counter()
    for field in FIELDS:
        counts.update(status.get(field, {}))
    return dict(counts)


def _check_attempt(planned: Planned, old: Status, new: Status) -> None:
    begun = new.get("attempt", 0) - old.get("attempt", 0)
    counts = [status.get("retries", {}).get(restart_scope.KEY, 0) for status in (old, new)]
    require(begun in (0, 1), f"the attempt changes by {begun}")
    failed = any(
        policies.counter(planned.job, pod) in ("retries", "job") and pod.attempt == old.get("attempt", 0)
        for pod in planned.current
    )
    expected = int(begun == 1 and failed)
    require(counts[1] - counts[0] == expected, f"the job's retries become {counts[1]} from {counts[0]}")
