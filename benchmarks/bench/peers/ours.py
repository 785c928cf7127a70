"""This operator: `dljob-operator run` with its defaults."""

from __future__ import annotations

import sys

from bench.peers.base import Peer

PEER = Peer(
    name="dljob-operator",
    title="this operator",
    command=lambda kubeconfig, scratch: [sys.executable, "-m", "dljob_operator", "run"],
    ready="ready:",
    reconciles=r"dljob_reconciles_total\{",
)
