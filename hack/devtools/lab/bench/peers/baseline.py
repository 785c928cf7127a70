"""The baselines: bare clients that write the same objects without planning, in Python and in Go.

Each has its fastest number of connections on two cores. The Python client created 100 jobs of 4 pods in 2.7 to 3.1 s
with 8, in 2.2 to 2.5 s with 16 and in 1.8 to 2.2 s with 32 writers. The Go client did so in 4.0 to 4.4 s with 8, in
2.5 to 3.0 s with 32 and in 2.4 s with 64, on another machine.
"""

from __future__ import annotations

import sys
from pathlib import Path

from devtools.lab.bench import tools
from devtools.lab.bench.peers.base import PROGRAMS, Limits, Peer

PYTHON_WRITERS = 32
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
