"""The order of sessions, and which workloads are skipped when time is short. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from devtools.lab.bench.workloads import Sizes

if TYPE_CHECKING:
    from devtools.lab.bench.peers import Peer

IDLE, ONE, MANY, KINDS, REPLICAS = "idle", "one job", "many jobs", "kinds", "replicas"
ALONE, MOST, CHANGE, RESTART, FINISHED, HUGE = "alone", "most jobs", "change", "restart", "finished", "huge"
FAILOVER, HANDOVER, LONG = "failover", "handover", "long specs"
"""HANDOVER is of the workload FAILOVER: the leader releases its Lease."""
BESIDE = "beside a large job"
BEFORE = "before a large job"
"""The samples of BESIDE: small jobs while a large one is created, and before that."""
LIGHT = (IDLE, LONG, ONE, MANY, KINDS, REPLICAS)
HEAVY = (ALONE, MOST, CHANGE, RESTART, FAILOVER, FINISHED)
LARGE = (HUGE, BESIDE)
GROUPS = (LIGHT, HEAVY, LARGE)
WORKLOADS = (*LIGHT, *HEAVY, *LARGE)
GROWTH = "growth"
"""Not in WORKLOADS: it needs a disposable cluster. See :mod:`bench.growth`."""


@dataclass(frozen=True)
class Planned:
    """One start of one peer, and its workloads."""

    peer: Peer
    round: int
    workloads: tuple[str, ...]


def sessions(peers: Sequence[Peer], rounds: int, chosen: Collection[str] = WORKLOADS) -> Iterator[Planned]:
    """The most significant first. After each round comes one group of workloads of the peers for which it is slow.

    Peers take turns within each round, so that other load on the machine affects all of them. The first session after
    a pause is the slowest, so at each repetition they come in the opposite order. Where the time runs out, what remains
    is left out.
    """
    turns = dict.fromkeys(GROUPS, 0)
    for number, group, late in _turns(rounds):
        taking = [peer for peer in peers if (set(group) <= set(peer.limits.once)) == late]
        order = reversed(taking) if turns[group] % 2 and not late else taking
        found = [Planned(peer, number, wanted) for peer in order if (wanted := _wanted(peer, group, number, chosen))]
        if found and not late:
            turns[group] += 1
        yield from found


def _turns(rounds: int) -> Iterator[tuple[int, tuple[str, ...], bool]]:
    """The number of the round, the workloads, and whether they are those of slow peers."""
    late = [(1, group, True) for group in GROUPS]
    for number in range(1, rounds + 1):
        yield from ((number, group, False) for group in GROUPS)
        yield from late[number - 1 : number]
    yield from late[rounds:]


def _wanted(peer: Peer, workloads: Sequence[str], number: int, chosen: Collection[str]) -> tuple[str, ...]:
    return tuple(w for w in workloads if w in chosen and takes_part(peer, w) and again(peer, w, number))


def takes_part(peer: Peer, workload: str) -> bool:
    limits = peer.limits
    match workload:
        case "replicas":
            return limits.replicas != 0
        case "kinds":
            return bool(peer.kinds)
        case "long specs":
            return bool(peer.kinds) and limits.heavy and limits.lasting
        case "failover":
            return limits.heavy and limits.lasting and bool(peer.standby)
        case "most jobs":
            return limits.heavy
        case "huge":
            return limits.heavy and limits.large
        case "beside a large job" | "alone" | "change" | "restart" | "finished":
            return limits.heavy and limits.lasting
    return True


def again(peer: Peer, workload: str, number: int) -> bool:
    """Slow workloads are repeated from the third round on, and what needs minutes of rest never."""
    if workload in (IDLE, LONG):
        return number == 1
    if workload == KINDS:
        return number == 1 or peer.limits.lasting
    return workload in LIGHT or number != 2


def count(wanted: int, limit: int | None) -> int:
    return wanted if limit is None else min(wanted, limit)


def replica_sizes(peer: Peer, sizes: Sizes) -> tuple[int, ...]:
    return tuple(size for size in sizes.replicas if peer.limits.replicas is None or size <= peer.limits.replicas)


def workloads_named(names: str) -> tuple[str, ...]:
    """Workloads from comma-separated names; all of them for "". Raises ValueError."""
    wanted = _split(names)
    for name in wanted:
        if name not in WORKLOADS:
            raise ValueError(f"there is no workload {name!r}; the workloads are {', '.join(WORKLOADS)}")
    return tuple(wanted) or WORKLOADS


def _split(names: str) -> list[str]:
    parts: Iterable[str] = (name.strip() for name in names.split(","))
    return [name for name in parts if name]
