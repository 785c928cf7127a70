"""The baseline: a bare client that writes the same objects without planning, eight writes at a time."""

from __future__ import annotations

import sys

from bench.peers.base import PROGRAMS, Limits, Peer

PEER = Peer(
    name="baseline",
    title="bare client (baseline)",
    command=lambda kubeconfig, scratch: [sys.executable, str(PROGRAMS / "baseline.py")],
    ready="ready",
    limits=Limits(lasting=False),
)
