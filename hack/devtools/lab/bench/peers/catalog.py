"""Every peer, in the order of the first round and of the report."""

from __future__ import annotations

from collections.abc import Sequence

from devtools.lab.bench.peers import ansible_operator, ansible_stock, baseline, kopf_operator, ours, training_operator
from devtools.lab.bench.peers.base import Peer

PEERS: tuple[Peer, ...] = (
    ours.PEER,
    ours.PER_REPLICA,
    *ansible_operator.peers(),
    baseline.PYTHON,
    baseline.GO,
    training_operator.DEFAULT,
    training_operator.LIFTED,
    kopf_operator.PEER,
    ansible_stock.PEER,
)
OURS, ANSIBLE_OPERATOR, BASELINE, GO_BASELINE, DEFAULT, LIFTED, STOCK = (
    ours.PEER.name,
    ansible_operator.NAME,
    baseline.PYTHON.name,
    baseline.GO.name,
    training_operator.DEFAULT.name,
    training_operator.LIFTED.name,
    ansible_stock.PEER.name,
)


def chosen(names: str, more: Sequence[Peer] = ()) -> tuple[Peer, ...]:
    """The peers in the comma-separated ``names``; all of them for "". ``more`` are peers of this run, which come
    after this operator. Raises ValueError."""
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    every = (PEERS[0], *more, *PEERS[1:])
    known = {peer.name: peer for peer in every}
    for name in wanted:
        if name not in known:
            raise ValueError(f"there is no peer {name!r}; the peers are {', '.join(known)}")
    return tuple(peer for peer in every if not wanted or peer.name in wanted)
