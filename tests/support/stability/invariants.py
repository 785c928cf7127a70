"""What must hold at every write of the operator, whatever has happened before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.policies import restart_all
from ansible_collections.dljob.operator.plugins.module_utils.logic.policies.failure import has_failed
from ansible_collections.dljob.operator.plugins.module_utils.logic.spec_hash import spec_hash
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import completed as completed_
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import is_finished
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import REASON_BACKOFF
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import PodState

from support.stability.api_server import Write
from support.stability.state import State, Violation, read_status

if TYPE_CHECKING:
    from support.stability.reconciler import Planned

Status = Mapping[str, Any]


def require(holds: bool, text: str) -> None:
    if not holds:
        raise Violation(text)


def check_created(state: State, writes: tuple[Write, ...]) -> None:
    """A reconcile with the current observation ``state`` creates only pods of ranks that have none."""
    created = [one.rank for what, one in writes if what == "pod"]
    if not created:
        return
    require(len(created) == len(set(created)), f"two pods of one rank are created: {created}")
    twice = sorted({pod.rank for pod in state.pods} & set(created))
    require(not twice, f"a second pod of a rank is created: {twice}")
    status = read_status(state.status)
    require(not is_finished(status, state.generation), "a finished job gets a pod")


def check_deleted(planned: Planned, state: State) -> None:
    """A reconcile with the current observation ``state`` deletes a failed pod only after it has counted the failure, and
    a succeeded one only after it has recorded the success."""
    deleted = {one[1] for what, one in planned.writes if what == "delete" and one[0] == "Pod"}
    status = read_status(state.status)
    if not deleted or planned.job.run_policy.suspend or is_finished(status, state.generation):
        return
    if restart_all.applies_to(planned.job):
        return  # check_status compares its attempt with its count
    for pod in planned.observed.pods:
        if pod.name in deleted and _is_current(planned, pod) and has_failed(pod) and not pod.disrupted:
            counted = _failures(status).get(f"{pod.type}-{pod.index}", 0)
            require(counted > pod.attempt, f"{pod.name} is deleted, and its failure is not counted")


def check_status(planned: Planned, state: State, after: State) -> None:
    """What a status write may change."""
    old, new = read_status(state.status), read_status(after.status)
    if is_finished(old, state.generation):
        require(new.get("state") == old.get("state"), f"the outcome {old.get('state')} became {new.get('state')}")
        return
    _check_evidence(planned, old, new)
    if new.get("state") in ("Succeeded", "Failed") or old.get("specHash") != new.get("specHash"):
        return
    _check_completed(planned, old, new)
    if restart_all.applies_to(planned.job):
        _check_attempt(planned, old, new)
    else:
        _check_retries(planned, old, new)


def _check_evidence(planned: Planned, old: Status, new: Status) -> None:
    """Only pods of the present spec decide that a replica or the job has succeeded, or which pod has failed it. What
    happens to a pod that is being deleted does not count."""
    pods = [pod for pod in planned.observed.pods if not pod.deleting and _is_current(planned, pod)]
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
        require(failure["pod"] in guilty, f"the job has failed by {failure['pod']}, which did not fail by itself")


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
    for pod in planned.observed.pods:
        is_of_attempt = not restart_all.applies_to(planned.job) or pod.attempt == new.get("attempt", 0)
        if pod.phase == "Succeeded" and not pod.deleting and is_of_attempt and _is_current(planned, pod):
            require(pod.index in after.get(pod.type, ()), f"the success of {pod.name} is not recorded")


def _check_retries(planned: Planned, old: Status, new: Status) -> None:
    before, after = _failures(old), _failures(new)
    for replica in {*before, *after}:
        increase = after.get(replica, 0) - before.get(replica, 0)
        require(increase >= 0, f"the retries of {replica} decrease: {before} to {after}")
        if not increase:
            continue
        failed = [
            pod
            for pod in planned.observed.pods
            if f"{pod.type}-{pod.index}" == replica and has_failed(pod) and not pod.disrupted and not pod.deleting
        ]
        counted = [pod.attempt + 1 for pod in failed if _is_current(planned, pod)]
        require(after[replica] in counted, f"the retries of {replica} become {after[replica]}, its failures {counted}")


def _failures(status: Status) -> dict[str, int]:
    """The recorded failures of each replica, with those that a rule of podFailurePolicy ignores for the limits."""
    counts: Counter[str] = Counter()
    for field in ("retries", "ignoredRetries"):
        counts.update(status.get(field, {}))
    return dict(counts)


def _check_attempt(planned: Planned, old: Status, new: Status) -> None:
    begun = new.get("attempt", 0) - old.get("attempt", 0)
    counts = [status.get("retries", {}).get(restart_all.KEY, 0) for status in (old, new)]
    require(begun in (0, 1), f"the attempt changes by {begun}")
    failed = any(
        has_failed(pod) and not pod.disrupted and not pod.deleting and pod.attempt == old.get("attempt", 0)
        for pod in planned.observed.pods
        if _is_current(planned, pod)
    )
    expected = int(begun == 1 and failed)
    require(counts[1] - counts[0] == expected, f"the job's retries become {counts[1]} from {counts[0]}")


def _is_current(planned: Planned, pod: PodState) -> bool:
    """Whether the pod is of the present spec."""
    group = next((group for group in planned.job.groups if group.type.lower() == pod.type), None)
    return group is not None and pod.index < group.replicas and pod.spec_hash == spec_hash(planned.job, group)
