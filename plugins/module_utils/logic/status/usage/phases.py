"""The phases of a job, from the times at which the containers of its replicas ran."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ansible_collections.dljob.operator.plugins.module_utils.values.usage import (
    DELETION,
    DISRUPTION,
    ENDED,
    FAILURE,
    OTHER,
    QUEUED,
    RESTARTING,
    RUNNING,
    STALL,
    STARTING,
    STARTUP,
    SUSPENDED,
    Account,
    Facts,
    PodUse,
)

_Span = tuple[int, int]
_NEVER = 1 << 62
"""After every time that Kubernetes can write."""
_ORDER = (DISRUPTION, FAILURE, STALL, DELETION)
"""Of several ends in one second, that which explains the others."""


def needed(facts: Facts) -> int:
    """How many replicas, or groups of which one is enough, have to run."""
    others = sum(type_ != facts.elastic for type_, _ in facts.replicas)
    return others + (others < len(facts.replicas))


def timeline(account: Account, facts: Facts, uses: Sequence[PodUse], until: int) -> Iterator[tuple[int, str]]:
    """When which phase begins, from ``account.settled`` on. The first, and any other, may be the one before it."""
    end = until if facts.ended is None else min(max(facts.ended, account.settled), until)
    if account.phase != ENDED or facts.ended is None:
        yield from _until(account, facts, uses, end)
    if facts.ended is not None:
        yield end, ENDED


def _until(account: Account, facts: Facts, uses: Sequence[PodUse], until: int) -> Iterator[tuple[int, str]]:
    start, phase = account.settled, account.phase
    if phase == ENDED or (phase == SUSPENDED and not facts.rests):
        start = until if facts.rests else min(max(account.since, facts.started), until)
        phase = QUEUED
        yield start, QUEUED
    cursor = start
    for first, last in _up(facts, uses):
        if start < last and first <= until:
            if first > cursor:
                yield from _down(phase, facts, uses, (cursor, first))
            yield max(first, start), RUNNING
            phase, cursor = RUNNING, last
    if cursor <= until:
        yield from _down(phase, facts, uses, (cursor, until))


def _down(phase: str, facts: Facts, uses: Iterable[PodUse], span: _Span) -> Iterator[tuple[int, str]]:
    """The phases of a time in which not all replicas run, after ``phase``."""
    start, end = span
    if facts.rests and phase in (RUNNING, facts.rests):
        yield start, facts.rests
        return
    if phase in (RUNNING, RESTARTING):
        yield start, RESTARTING
    else:
        yield from _before_running(uses, span)
    if facts.rests:
        yield end if facts.rested is None else min(max(facts.rested, start), end), facts.rests


def _before_running(uses: Iterable[PodUse], span: _Span) -> Iterator[tuple[int, str]]:
    """Starting while a pod has a node, and Queued otherwise."""
    start, end = span
    cursor = start
    for first, last in _merged((use.held.start, _NEVER if use.held.end is None else use.held.end) for use in uses):
        if start < last and first <= end:
            if first > cursor:
                yield cursor, QUEUED
            yield max(first, start), STARTING
            cursor = last
    if cursor <= end:
        yield cursor, QUEUED


def _up(facts: Facts, uses: Iterable[PodUse]) -> list[_Span]:
    """The times at which every replica ran or had succeeded; of the elastic type one of them."""
    spans: dict[tuple[str, int], list[_Span]] = {replica: [] for replica in facts.replicas}
    for use in uses:
        if use.replica in spans:
            spans[use.replica] += [(span.start, _NEVER if span.end is None else span.end) for span in use.worked]
            if use.succeeded is not None:
                spans[use.replica].append((use.succeeded, _NEVER))
    for replica in facts.completed & spans.keys():
        spans[replica].append((max((end for _, end in spans[replica]), default=0), _NEVER))
    found = [(0, _NEVER)]
    elastic: list[_Span] = []
    for (type_, _), own in spans.items():
        if type_ == facts.elastic:
            elastic += own
        else:
            found = _common(found, _merged(own))
    return _common(found, _merged(elastic)) if any(type_ == facts.elastic for type_, _ in spans) else found


def _merged(spans: Iterable[_Span]) -> list[_Span]:
    found: list[_Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def _common(left: Sequence[_Span], right: Sequence[_Span]) -> list[_Span]:
    """The times of both, each in order and without overlap."""
    found: list[_Span] = []
    at = other = 0
    while at < len(left) and other < len(right):
        start, end = max(left[at][0], right[other][0]), min(left[at][1], right[other][1])
        if start < end:
            found.append((start, end))
        if left[at][1] < right[other][1]:
            at += 1
        else:
            other += 1
    return found


def cause(phase: str, uses: Iterable[PodUse], at: int) -> str:
    """Why ``phase``, in which not all replicas run, began ``at`` that time."""
    if phase == STARTING:
        return STARTUP
    causes = {use.cause for use in uses if use.worked and use.worked[-1].end == at}
    return next((one for one in _ORDER if one in causes), OTHER)
