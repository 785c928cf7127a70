"""``runPolicy.forceDeleteAfterSeconds``: deletes the pods of a lost node by force, for their replicas to run elsewhere.

Kubernetes keeps a pod as terminating until its kubelet has confirmed that the containers have ended. Where the node is
lost, no kubelet confirms it. The pod itself does not say so: the taint that evicted it may belong to a healthy node,
and the node may be back since. So only the node's own condition counts, read at the time of the deletion.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.shared.event import EventNote
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import PodState
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Deletion, Plan

FIRST_RETRY = 30.0
LAST_RETRY = 300.0
"""Seconds until a node that was not lost is read again: a tenth of the time for which the pod has been overdue, within
these bounds."""


@dataclass(frozen=True, slots=True)
class NodeState:
    """Whether a node is lost, and the end of a sentence that begins with "the node"."""

    is_lost: bool
    text: str


def due(job: DLJob, pods: Iterable[PodState], now: datetime) -> tuple[Deletion, ...]:
    """The deletions by force of all pods that have exceeded their grace period by the job's limit, each if its node is
    lost."""
    found = [pod for pod, late in _terminating(job, pods, now) if late >= 0]
    return tuple(Deletion("Pod", p.name, p.uid, lost_node=p.node) for p in sorted(found, key=lambda one: one.name))


def next_check(job: DLJob, pods: Iterable[PodState], now: datetime) -> float | None:
    """Seconds until a pod is due, or until the node of one that is due is read again; ``None`` where there is none.

    A pod that was deleted and still exists has a finalizer: so the next reconcile is never immediate.
    """
    late = [seconds for _, seconds in _terminating(job, pods, now)]
    waits = [-seconds if seconds < 0 else min(max(FIRST_RETRY, seconds / 10), LAST_RETRY) for seconds in late]
    return min(waits, default=None)


def _terminating(job: DLJob, pods: Iterable[PodState], now: datetime) -> Iterable[tuple[PodState, float]]:
    """The pods that are being deleted, each with the seconds since it is due."""
    limit = job.run_policy.force_delete_after_seconds
    for pod in pods if limit is not None else ():
        late = clock.seconds_since(pod.terminating, now)  # the time at which the grace period ends
        if limit is not None and late is not None and pod.node:
            yield pod, late - limit


def nodes_of(plan: Plan) -> tuple[str, ...]:
    """The nodes whose state :func:`confirm` needs."""
    return tuple(dict.fromkeys(deletion.lost_node for deletion in plan.deletions if deletion.lost_node))


def node_state(node: Mapping[str, Any] | None) -> NodeState:
    """The state of a Node object; ``None`` stands for one that does not exist."""
    if node is None:
        return NodeState(True, "no longer exists")
    conditions = (node.get("status") or {}).get("conditions") or ()
    ready = next((one for one in conditions if one.get("type") == "Ready"), None)
    if ready is None:
        return NodeState(False, "has not reported yet whether it is Ready")
    if ready.get("status") == "True":
        return NodeState(False, "is Ready")
    return NodeState(True, f"is NotReady ({ready.get('reason') or ready.get('status')})")


def confirm(plan: Plan, nodes: Mapping[str, NodeState]) -> tuple[Plan, tuple[EventNote, ...]]:
    """``plan`` without the deletions by force whose node is not lost, and what to report of both kinds."""
    asked = [d for d in plan.deletions if d.lost_node]
    forced = [d for d in asked if nodes[d.lost_node].is_lost]
    kept = [d for d in asked if not nodes[d.lost_node].is_lost]
    notes = []
    if forced:
        text = f"{_which(forced, nodes)}: deleted by force, and the replica gets a new pod"
        notes.append(EventNote("Warning", c.EVENT_FORCE_DELETED, text))
    if kept:
        text = f"{_which(kept, nodes)}: not deleted by force, and the replica waits for its end"
        notes.append(EventNote("Warning", c.EVENT_NOT_TERMINATED, text))
    remaining = tuple(d for d in plan.deletions if not d.lost_node or nodes[d.lost_node].is_lost)
    return dataclasses.replace(plan, deletions=remaining), tuple(notes)


def _which(deletions: Sequence[Deletion], nodes: Mapping[str, NodeState]) -> str:
    first = deletions[0]
    more = f" and {len(deletions) - 1} more" if len(deletions) > 1 else ""
    state = nodes[first.lost_node].text
    return f"pod {first.name}{more} should have terminated, and the node {first.lost_node} {state}"
