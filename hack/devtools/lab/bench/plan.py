"""The order of sessions, and which workloads are skipped when time is short. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from devtools.lab.bench.peers import Peer
from devtools.lab.bench.workloads import Sizes

IDLE, ONE, MANY, KINDS, REPLICAS = "idle", "one job", "many jobs", "kinds", "replicas"
ALONE, MOST, CHANGE, RESTART, FINISHED, HUGE = "alone", "most jobs", "change", "restart", "finished", "huge"
BESIDE = "beside a large job"
BEFORE = "before a large job"
"""The samples of BESIDE: small jobs while a large one is created, and before that."""
LIGHT = (IDLE, ONE, MANY, KINDS, REPLICAS)
HEAVY = (ALONE, MOST, CHANGE, RESTART, FINISHED)
LARGE = (BESIDE, HUGE)
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
    """The most significant first: all peers once, the thousand jobs, the large job; then repetitions for the spread.

    Peers take turns within each round, so that other load on the machine affects all of them. The first session after
    a pause is the slowest, so at each repetition they come in the opposite order. Those with less work come last: where
    the time runs out, they are left out.
    """
    others = [peer for peer in peers if peer.limits.lasting]
    last = [peer for peer in peers if not peer.limits.lasting]
    turns = dict.fromkeys((LIGHT, HEAVY, LARGE), 0)
    for number in range(1, rounds + 1):
        for workloads in (LIGHT, HEAVY, LARGE):
            order = [*(others if turns[workloads] % 2 == 0 else reversed(others)), *last]
            found = [
                Planned(peer, number, wanted) for peer in order if (wanted := _wanted(peer, workloads, number, chosen))
            ]
            if found:
                turns[workloads] += 1
            yield from found


def _wanted(peer: Peer, workloads: Sequence[str], number: int, chosen: Collection[str]) -> tuple[str, ...]:
    return tuple(w for w in workloads if w in chosen and takes_part(peer, w) and again(peer, w, number))


def takes_part(peer: Peer, workload: str) -> bool:
    limits = peer.limits
    match workload:
        case "replicas":
            return limits.replicas != 0
        case "kinds":
            return bool(peer.kinds)
        case "most jobs" | "huge":
            return limits.heavy
        case "beside a large job" | "alone" | "change" | "restart" | "finished":
            return limits.heavy and limits.lasting
    return True


def again(peer: Peer, workload: str, number: int) -> bool:
    """Slow workloads are repeated last, from the third round on; those of a slow peer never."""
    if number == 1:
        return True
    if workload in (*HEAVY, *LARGE):
        return number >= 3 and peer.limits.lasting
    return workload != REPLICAS or peer.limits.lasting or number >= 3


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
