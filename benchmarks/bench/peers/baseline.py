"""The baselines: bare clients that write the same objects without planning, in Python and in Go.

Each writes with the number of connections with which it was fastest on two cores (README.md has the figures).
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench import tools
from bench.peers.base import PROGRAMS, Limits, Peer

PYTHON_WRITERS = 8
GO_WRITERS = 32


def _compile(kubeconfig: Path) -> None:
    tools.baseline()


PYTHON = Peer(
    name="baseline",
    title="bare client (baseline)",
    command=lambda kubeconfig, scratch: [
        sys.executable, str(PROGRAMS / "baseline.py"), f"--writers={PYTHON_WRITERS}",
    ],
    ready="ready",
    limits=Limits(lasting=False),
)  # fmt: skip
GO = Peer(
    name="baseline-go",
    title="bare Go client (client-go, protobuf)",
    command=lambda kubeconfig, scratch: [str(tools.baseline()), f"--writers={GO_WRITERS}"],
    ready="ready",
    limits=Limits(lasting=False),
    prepare=_compile,
)
