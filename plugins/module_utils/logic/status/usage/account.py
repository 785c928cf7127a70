"""A job's account, brought up to date with what is seen of its pods."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.dljob.operator.plugins.module_utils.logic.status.usage import amounts, phases
from ansible_collections.dljob.operator.plugins.module_utils.values.usage import (
    COUNTED,
    DELETION,
    IDLE,
    QUEUED,
    STALL,
    Account,
    Amounts,
    Facts,
    Interruptions,
    PodUse,
    PodUses,
)


def advance(old: Account | None, facts: Facts, seen: PodUses, now: int) -> Account:
    """The account at ``now``, or at the time of the old one if that is later: a clock may go back.

    Amounts are those of the pods that exist, by their own times, and of those that are gone. Another process than
    before has not seen every pod go: what is missing then went when that process began to watch.
    """
    needed = phases.needed(facts)
    account = old or Account(facts.created, QUEUED, facts.created, facts.created, needed=needed)
    until = max(now, account.as_of)
    is_first, is_same = old is None, bool(seen.watch) and seen.watch == account.watch
    news = [use for use in seen.gone if _is_new(use, account, is_first=is_first, is_same=is_same)]
    uses = (*seen.pods, *news)
    if facts.stalled:
        uses = tuple(replace(use, cause=STALL) if use.cause == DELETION else use for use in uses)
    watched = min(max(account.as_of, until if seen.since is None else seen.since), until)
    before = account.gone if is_first or is_same else amounts.added(account.gone, _unseen(account, uses, watched))
    settled = account.settled if is_first or is_same else max(account.settled, watched)
    if needed != account.needed:
        settled = until
    current = replace(account, settled=settled)
    for at, phase in phases.timeline(current, facts, uses, until):
        if phase != current.phase:
            current = _entered(current, phase, at, uses, before)
    gone = amounts.added(before, amounts.used(news))
    is_final = bool(news) or not (is_first or is_same)
    return replace(
        current,
        as_of=until,
        settled=until if is_final else max(settled, current.since),
        total=amounts.added(gone, amounts.used(seen.pods, until)),
        held=amounts.held(seen.pods, until),
        gone=gone,
        needed=needed,
        watch=seen.watch,
        number=max((use.number for use in seen.gone), default=account.number if is_same else 0),
    )


def _is_new(use: PodUse, account: Account, *, is_first: bool, is_same: bool) -> bool:
    """Whether the account lacks a pod that is gone. Of what another process has counted only the time tells."""
    if is_same:
        return use.number > account.number
    return is_first or use.held.end is None or use.held.end > account.as_of


def _unseen(account: Account, uses: tuple[PodUse, ...], watched: int) -> Amounts:
    """What pods held whose end no process has seen: up to the account's time, and from then until ``watched``."""
    known = amounts.added(account.gone, amounts.used(uses, account.as_of))
    rate = amounts.excess(account.held, amounts.held(uses, account.as_of))
    return amounts.added(amounts.excess(account.total, known), amounts.times(rate, watched - account.as_of))


def _entered(account: Account, phase: str, at: int, uses: tuple[PodUse, ...], before: Amounts) -> Account:
    """The account with the end of its phase, and the beginning of the next one."""
    lasted = max(0, at - account.since)
    seconds, interruptions = dict(account.seconds), dict(account.interruptions)
    if lasted and account.phase in COUNTED:
        seconds[account.phase] = seconds.get(account.phase, 0) + lasted
    if account.phase in IDLE or phase in IDLE:
        total = amounts.added(before, amounts.used(uses, at))
    if account.phase in IDLE:
        known = interruptions.get(account.cause, Interruptions())
        held = amounts.added(known.held, amounts.excess(total, account.began_with))
        interruptions[account.cause] = Interruptions(known.count + 1, known.seconds + lasted, held)
    return replace(
        account,
        phase=phase,
        since=at,
        seconds=seconds,
        interruptions=interruptions,
        cause=phases.cause(phase, uses, at) if phase in IDLE else "",
        began_with=total if phase in IDLE else {},
    )
