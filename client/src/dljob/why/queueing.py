"""Jobs that wait for a queue of Kueue, or for a gang scheduler to start all members together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dljob.times import time_of
from dljob.view import QUEUE_LABEL
from dljob.why.facts import Facts, condition, is_true, mapping, maps, name_of
from dljob.why.finding import Finding, Rule, found, rule
from dljob.why.model import Evidence, Object, Severity

PATIENCE = 30.0
"""Seconds in which Kueue and its controllers make the Workload of a new job."""

WAITS = rule("kueue-waits", "", "the job waits in the queue {queue}{position}: {why}", "Wait, ask for less, or use another queue.", Severity.INFO)  # fmt: skip
TOO_LARGE = rule("kueue-too-large", "", "the job asks for more than the queue {queue} can ever give: {why}", "Ask for less, or have the quota raised.")  # fmt: skip
NO_QUEUE = rule("kueue-queue-missing", "", "the queue {queue} does not exist in this namespace", "Correct the label kueue.x-k8s.io/queue-name: kubectl get localqueues.")  # fmt: skip
INACTIVE = rule("kueue-queue-inactive", "", "the queue {queue} admits nothing: {why}", "Its administrator has to repair the ClusterQueue.")  # fmt: skip
STOPPED = rule("kueue-queue-stopped", "", "the queue {queue} is stopped: {why}", "Its administrator has to set stopPolicy to None.")  # fmt: skip
DEACTIVATED = rule("kueue-deactivated", "", "Kueue has deactivated the Workload {workload} of the job: {why}", "Set its spec.active to true to queue it again.")  # fmt: skip
CHECKS = rule("kueue-admission-check", "", "the job waits for admission checks: {why}", "See the controller of the check.", Severity.INFO)  # fmt: skip
EVICTED = rule("kueue-evicted", "", "Kueue has evicted the job, and it queues again{position}: {why}", "Wait; a higher priority is evicted later.", Severity.WARNING)  # fmt: skip
NO_WORKLOAD = rule("kueue-no-workload", "", "Kueue does not know the job of the queue {queue}", "Start the operator with --kueue workloads, or add the kind to Kueue's integrations.")  # fmt: skip
GANG = rule("gang-incomplete", "", "the gang {group} waits until {least} pods can start together: {why}", "Free as much room as all members need together, or lower schedulingPolicy.minAvailable.", Severity.WARNING)  # fmt: skip
GANG_PODS = rule("gang-too-few-pods", "", "the gang {group} needs {least} pods, and the job has {pods}", "Lower schedulingPolicy.minAvailable, or raise the replicas.")  # fmt: skip


def find(facts: Facts) -> Iterator[Finding]:
    if facts.outcome or facts.is_deleted:
        return
    queue = str(facts.labels.get(QUEUE_LABEL) or "")
    if queue and not (facts.live or facts.is_settled):
        yield from _kueue(facts, queue)
    for group in facts.snapshot.pod_groups:
        yield from _gang(facts, group)


def _kueue(facts: Facts, queue: str) -> Iterator[Finding]:
    workload = _workload(facts)
    local = next(iter(facts.snapshot.local_queues), None)
    if workload is not None and is_true(workload, "Admitted") and not is_true(workload, "Evicted"):
        return
    about = f"LocalQueue/{queue}"
    if local is None and facts.snapshot.could_read("local_queues"):
        yield found(
            NO_QUEUE,
            {"queue": queue},
            Evidence(f"{facts.kind}/{facts.name}", f"{QUEUE_LABEL}: {queue}"),
            facts.created,
            "",
        )
        return
    for one, kind in ((local, "LocalQueue"), *((each, "ClusterQueue") for each in facts.snapshot.cluster_queues)):
        if one is None:
            continue
        policy = mapping(one.get("spec")).get("stopPolicy")
        active = condition(one, "Active")
        fields = {"queue": queue, "why": f"stopPolicy of {kind} {name_of(one)} is {policy}"}
        quoted = Evidence(f"{kind}/{name_of(one)}", f"stopPolicy: {policy}")
        if policy not in (None, "", "None"):
            yield found(STOPPED, fields, quoted, None, "")
            return
        if active.get("status") == "False":
            why = str(active.get("message") or active.get("reason"))
            quoted = Evidence(quoted.object, f"Active is False: {active.get('reason')}: {why}")
            yield found(INACTIVE, {"queue": queue, "why": why}, quoted, time_of(active.get("lastTransitionTime")), "")
            return
    if workload is None:
        is_late = facts.age(facts.created) >= PATIENCE and not facts.pods
        if is_late and facts.snapshot.could_read("workloads"):
            yield found(
                NO_WORKLOAD, {"queue": queue}, Evidence(about, "it has no Workload of this job"), facts.created, ""
            )
        return
    yield _waiting(facts, queue, workload)


def _waiting(facts: Facts, queue: str, workload: Object) -> Finding:
    about = f"Workload/{name_of(workload)}"
    reserved, evicted = condition(workload, "QuotaReserved"), condition(workload, "Evicted")
    fields: dict[str, Any] = {
        "queue": queue,
        "workload": name_of(workload),
        "position": _position(facts, queue, workload),
    }
    why = str(reserved.get("message") or facts.reason or "it has not been looked at yet").rstrip(".")
    since = time_of(reserved.get("lastTransitionTime")) or time_of(
        mapping(workload.get("metadata")).get("creationTimestamp")
    )
    one: Rule = WAITS
    if mapping(workload.get("spec")).get("active") is False:
        one, why = DEACTIVATED, str(evicted.get("message") or "spec.active is false")
    elif reserved.get("status") == "True":
        states = maps(mapping(workload.get("status")).get("admissionChecks"))
        one, why = (
            CHECKS,
            ", ".join(f"{each.get('name')} is {each.get('state')}" for each in states if each.get("state") != "Ready"),
        )
        why = why or str(reserved.get("message"))
    elif "maximum capacity" in why or "exceeds the maximum" in why:
        one = TOO_LARGE
    elif evicted.get("status") == "True":
        one, why = EVICTED, str(evicted.get("message") or evicted.get("reason"))
    return found(one, {**fields, "why": why}, Evidence(about, why), since, "")


def _workload(facts: Facts) -> Object | None:
    """The newest one of the job."""
    uid = mapping(facts.job.get("metadata")).get("uid")
    owned = [one for one in facts.snapshot.workloads
             if any(owner.get("uid") == uid for owner in maps(mapping(one.get("metadata")).get("ownerReferences")))]  # fmt: skip
    return max(owned, key=lambda one: str(mapping(one.get("metadata")).get("creationTimestamp")), default=None)


def _position(facts: Facts, queue: str, workload: Object) -> str:
    """`` at position 3 of 7``, from Kueue, or else as Kueue sorts what the user sees."""
    answered = facts.snapshot.pending_workloads
    for one in answered:
        if name_of(one) == name_of(workload):
            place = one.get("positionInLocalQueue")
            return f" at position {place + 1} of {len(answered)}" if isinstance(place, int) else ""
    waiting = [one for one in facts.snapshot.workloads if _waits_in(one, queue)]
    names = [name_of(one) for one in sorted(waiting, key=_turn)]
    if name_of(workload) not in names:
        return ""
    return f" at position {names.index(name_of(workload)) + 1} of {len(names)}"


def _waits_in(one: Object, queue: str) -> bool:
    spec = mapping(one.get("spec"))
    is_done = is_true(one, "Finished") or is_true(one, "QuotaReserved")
    return spec.get("queueName") == queue and spec.get("active") is not False and not is_done


def _turn(one: Object) -> tuple[int, str]:
    return -int(mapping(one.get("spec")).get("priority") or 0), str(
        mapping(one.get("metadata")).get("creationTimestamp")
    )


def _gang(facts: Facts, group: Object) -> Iterator[Finding]:
    spec, status = mapping(group.get("spec")), mapping(group.get("status"))
    native = mapping(mapping(spec.get("schedulingPolicy")).get("gang")).get("minCount")
    least = spec.get("minMember") or native
    unplaced = [pod for pod in facts.live if not pod.node]
    if not isinstance(least, int) or not unplaced:
        return
    created = time_of(mapping(group.get("metadata")).get("creationTimestamp"))
    fields = {"group": name_of(group), "least": least, "pods": len(facts.pods)}
    about = f"PodGroup/{name_of(group)}"
    if len(facts.pods) < least and least > max(facts.wanted, len(facts.pods)):
        words = f"minMember: {least}, phase: {status.get('phase') or 'unknown'}"
        yield found(GANG_PODS, fields, Evidence(about, words), created, "")
        return
    conditions = maps(status.get("conditions"))
    said = [
        one
        for one in conditions
        if one.get("type") in ("Unschedulable", "PodGroupScheduled", "PodGroupInitiallyScheduled")
    ]
    failing = next(
        (one for one in reversed(said) if (one.get("status") == "True") == (one.get("type") == "Unschedulable")), None
    )
    scheduling = [condition(pod.object, "PodScheduled") for pod in unplaced]
    message = str(failing.get("message") or failing.get("reason")) if failing else ""
    message = message or next((str(one["message"]) for one in scheduling if one.get("message")), "")
    if message or facts.age(created) >= PATIENCE:
        why = message or f"{len(unplaced)} pods have no node"
        since = time_of(failing.get("lastTransitionTime")) if failing else created
        yield found(GANG, {**fields, "why": why.rstrip(".")}, Evidence(about, why), since, "")
