"""Why a job does not start, does not go on, or has failed: ``explain`` is one pure function of what the API server has."""

from __future__ import annotations

from collections.abc import Iterator

from dljob.why import admission, containers, images, job, nodes, operator, queueing, scheduling, volumes
from dljob.why.facts import FAILED, SUCCEEDED, Facts
from dljob.why.finding import Finding, causes
from dljob.why.model import Cause, Evidence, Severity, Snapshot, Unread

__all__ = ["Cause", "Evidence", "Severity", "Snapshot", "Unread", "explain"]

_OF_PODS = (images, scheduling, volumes, nodes, containers)
_COVERED = {
    "claim-unbound": ("claim-",),
    "claim-lost": ("claim-lost",),
    "suspended": ("kueue-",),
    **dict.fromkeys(("replicas-missing", "job-failed"), ("",)),
}
"""Findings that say less than others whose ids begin like this."""


def explain(snapshot: Snapshot) -> tuple[Cause, ...]:
    """The causes, the worst first; none where nothing is wrong."""
    return causes(_without_repetition(list(_findings(Facts(snapshot)))))


def _findings(facts: Facts) -> Iterator[Finding]:
    yield from job.find(facts)
    yield from operator.find(facts)
    yield from admission.find(facts)
    yield from queueing.find(facts)
    if facts.outcome == SUCCEEDED:
        return
    if facts.outcome == FAILED:
        yield from nodes.find(facts)
        yield from containers.find(facts)
        return
    for one in _OF_PODS:
        yield from one.find(facts)


def _without_repetition(found: list[Finding]) -> Iterator[Finding]:
    has_gang = any(one.id == "gang-incomplete" and not one.who for one in found)
    for one in found:
        beginnings = _COVERED.get(one.id, ())
        others = [other for other in found if other is not one and other.id.startswith(tuple(beginnings))]
        is_covered = any(other.id != one.id or _is_nearer(other, one) for other in others)
        if not is_covered and not (one.id == "gang-incomplete" and has_gang and one.who):
            yield one


def _is_nearer(one: Finding, other: Finding) -> bool:
    """Whether it quotes the object itself, and the other one a pod that waits for it."""
    return not one.evidence[0].object.startswith("Pod/") and other.evidence[0].object.startswith("Pod/")
