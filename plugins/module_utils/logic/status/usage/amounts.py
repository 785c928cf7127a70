"""Arithmetic of amounts: by resource, in millionths."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.dljob.operator.plugins.module_utils.values.usage import Amounts, PodUse, Span


def added(*amounts: Amounts) -> Amounts:
    """The sum, without what is zero."""
    total: dict[str, int] = {}
    for one in amounts:
        for name, amount in one.items():
            total[name] = total.get(name, 0) + amount
    return {name: amount for name, amount in total.items() if amount}


def excess(amounts: Amounts, less: Amounts) -> Amounts:
    """By how much ``amounts`` are above ``less``; nothing where they are below."""
    found = {name: amount - less.get(name, 0) for name, amount in amounts.items()}
    return {name: amount for name, amount in found.items() if amount > 0}


def times(amounts: Amounts, factor: int) -> Amounts:
    """Each multiplied by ``factor``."""
    return {name: amount * factor for name, amount in amounts.items()}


def used(uses: Iterable[PodUse], until: int | None = None) -> Amounts:
    """What pods held, times its seconds. Of one that still holds it, and of all others, up to ``until``."""
    return added(*(times(use.requests, _seconds(use.held, until)) for use in uses))


def held(uses: Iterable[PodUse], at: int) -> Amounts:
    """What pods hold at a time."""
    return added(*(use.requests for use in uses if _covers(use.held, at)))


def _seconds(span: Span, until: int | None) -> int:
    ends = [end for end in (span.end, until) if end is not None]
    return max(0, min(ends, default=span.start) - span.start)


def _covers(span: Span, at: int) -> bool:
    return span.start <= at and (span.end is None or at < span.end)
