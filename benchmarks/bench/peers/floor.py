"""The floor: the same objects written by a bare client that plans nothing, eight writes at a time."""

from __future__ import annotations

import sys

from bench.peers.base import PROGRAMS, Limits, Peer

PEER = Peer(
    name="floor",
    title="bare client (floor)",
    command=lambda kubeconfig, scratch: [sys.executable, str(PROGRAMS / "floor.py")],
    ready="ready",
    limits=Limits(lasting=False),
)
