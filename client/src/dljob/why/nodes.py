"""Nodes that are lost, and pods that a node or the cluster has ended."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from dljob.times import time_of
from dljob.why.facts import FAILED, Facts, Pod, condition, is_true, mapping, name_of
from dljob.why.finding import Finding, first_match, found, rule
from dljob.why.model import Evidence, Object, Severity

OVERDUE = 30.0
"""Seconds after the end of a pod's grace period."""

ENDED = (
    rule("evicted", "Evicted", "the node has evicted {who}: {why}", "Ask for what the program uses, in requests and limits."),
    rule("node-shutdown", r"NodeShutdown|imminent node shutdown|Terminated", "{who} ended because its node shut down",
         "Allow restarts: restartPolicy OnFailure or ExitCode.", Severity.WARNING),
    rule("preempted", "Preempt", "{who} gave way to a pod of higher priority", "Use a higher priorityClassName, or allow restarts.", Severity.WARNING),
    rule("node-refused", r"UnexpectedAdmissionError|OutOf\w+|NodeAffinity|NodePorts|UnsupportedPodLevelResources|AppArmor|TopologyAffinityError",
         "the node refused {who}: {why}", "Look at the device plugin and at the resources of the node."),
    rule("node-lost", "NodeLost|NodeUnreachable|DeletionByTaintManager|DeletionByPodGC", "the node of {who} was lost: {why}",
         "Repair the node; allow restarts.", Severity.WARNING),
    rule("evicted-by-api", "EvictionByEvictionAPI", "an eviction, as by kubectl drain, ended {who}", "Allow restarts, or use a PodDisruptionBudget.", Severity.WARNING),
    rule("pod-deadline", "DeadlineExceeded", "{who} ran longer than activeDeadlineSeconds of its template", "Raise it, or remove it."),
    rule("disrupted", "", "something outside has ended {who}: {why}", "Allow restarts: restartPolicy OnFailure or ExitCode.", Severity.WARNING),
)  # fmt: skip
NOT_READY = rule("node-not-ready", "", "node {node} of {who} does not answer: {why}", "Repair the node; see docs/semantics/lost-nodes.md for its pods.")  # fmt: skip
GONE = rule("node-gone", "", "node {node} of {who} no longer exists", "Wait for the garbage collector, or delete the pod by force.", Severity.WARNING)  # fmt: skip
PRESSURE = rule("node-pressure", "", "node {node} of {who} has {why}", "Free memory, disk or processes of the node.", Severity.WARNING)  # fmt: skip
STUCK = rule("stuck-terminating", "", "{who} should have terminated at {time}", "If node {node} is gone: kubectl delete pod {pod} --force --grace-period=0.")  # fmt: skip
FINALIZER = rule("pod-finalizer", "", "finalizers keep {who} after the deletion: {finalizers}", "Only their controller may remove them; see why it does not.")  # fmt: skip
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


def find(facts: Facts) -> Iterator[Finding]:
    nodes = {name_of(one): one for one in facts.snapshot.nodes}
    for pod in facts.pods:
        yield from _ended(facts, pod)
        yield from _terminating(facts, pod)
        if pod.node and not pod.has_ended and not pod.is_well:
            yield from _node(facts, pod, nodes)


def _ended(facts: Facts, pod: Pod) -> Iterator[Finding]:
    reason, message = pod.status.get("reason"), " ".join(str(pod.status.get("message") or "").split())
    disruption = condition(pod.object, "DisruptionTarget") if is_true(pod.object, "DisruptionTarget") else {}
    if not (pod.phase == FAILED and (reason or disruption)) and not (disruption and not pod.has_ended):
        return
    words = f"{reason or disruption.get('reason')}: {message or disruption.get('message') or ''}"
    if match := first_match(ENDED, words):
        since = time_of(disruption.get("lastTransitionTime")) or time_of(pod.status.get("startTime"))
        why = message or str(disruption.get("message") or reason or disruption.get("reason"))
        yield found(match[0], {"why": why.rstrip(". ")}, Evidence(f"Pod/{pod.name}", words), since, pod.name)


def _terminating(facts: Facts, pod: Pod) -> Iterator[Finding]:
    if not pod.deleted or facts.now < pod.deleted + timedelta(seconds=OVERDUE):
        return
    finalizers = ", ".join(pod.metadata.get("finalizers") or ())
    fields = {
        "time": pod.metadata.get("deletionTimestamp"),
        "node": pod.node or "?",
        "pod": pod.name,
        "finalizers": finalizers,
    }
    words = f"deletionTimestamp: {fields['time']}, finalizers: {finalizers or 'none'}, phase: {pod.phase}"
    one = FINALIZER if finalizers and (pod.has_ended or not pod.node) else STUCK
    yield found(one, fields, Evidence(f"Pod/{pod.name}", words), pod.deleted, pod.name)


def _node(facts: Facts, pod: Pod, nodes: dict[str, Object]) -> Iterator[Finding]:
    node = nodes.get(pod.node)
    if node is None:
        if nodes and facts.snapshot.could_read("nodes"):
            yield found(GONE, {"node": pod.node}, Evidence(f"Pod/{pod.name}", f"nodeName: {pod.node}"), None, pod.name)
        return
    ready = condition(node, "Ready")
    if ready and ready.get("status") != "True":
        why = str(ready.get("message") or ready.get("reason") or "not Ready").rstrip(". ")
        quoted = Evidence(f"Node/{pod.node}", f"Ready is {ready.get('status')}: {ready.get('reason')}: {why}")
        since = time_of(ready.get("lastTransitionTime"))
        yield found(NOT_READY, {"node": pod.node, "why": why}, quoted, since, pod.name)
    for type_ in _PRESSURES:
        one = condition(node, type_)
        if one.get("status") == "True":
            quoted = Evidence(f"Node/{pod.node}", f"{type_}: {mapping(one).get('message') or one.get('reason')}")
            yield found(
                PRESSURE, {"node": pod.node, "why": type_}, quoted, time_of(one.get("lastTransitionTime")), pod.name
            )
