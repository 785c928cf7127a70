"""The baselines: bare clients that write the same objects without planning, in Python and in Go.

The Python client has as many connections as this operator. With 32 writers a Go client created 100 jobs of 4 pods on
two cores in 2.5 to 3.0 s, with 8 in 4.0 to 4.4 s and with 64 in 2.4 s.
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
