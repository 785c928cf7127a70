"""This operator: `dljob-operator run` with its defaults."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from devtools.lab.bench.peers.base import Limits, Peer
from devtools.lab.bench.workloads import OTHER_KINDS

RESTS_AFTER = 65.0
"""Workers that had no batch for a minute end."""

PEER = Peer(
    name="dljob-operator",
    title="this operator",
    command=lambda kubeconfig, scratch: [sys.executable, "-m", "dljob_operator", "run"],
    ready="ready:",
    reconciles=r"dljob_reconciles_total\{",
    kinds=OTHER_KINDS,
    rests_after=RESTS_AFTER,
)


PER_REPLICA = Peer(
    name="dljob-operator-services",
    title="this operator with a Service for each replica",
    command=lambda kubeconfig, scratch: [*PEER.command(kubeconfig, scratch), "--services", "per-replica"],
    ready=PEER.ready,
    reconciles=PEER.reconciles,
    limits=Limits(heavy=False),
    rests_after=RESTS_AFTER,
)
"""What the option costs: a job of n pods has n + 1 Services, as with training-operator."""


def previous(checkout: Path) -> Peer:
    """The operator of another checkout, with its own environment: for comparison with an older commit.

    Raises ValueError where the folder has no environment, which ``bash hack/venv.sh`` creates there.
    """
    python = checkout / ".venv" / "bin" / "python"
    if not python.is_file():
        raise ValueError(f"--previous: {checkout} has no .venv; create it with `bash hack/venv.sh` there")
    found = subprocess.run(
        ["git", "-C", str(checkout), "log", "-1", "--format=%h"], capture_output=True, text=True, check=True
    )
    return Peer(
        name="previous",
        title=f"this operator at {found.stdout.strip()}",
        command=lambda kubeconfig, scratch: [str(python), "-m", "dljob_operator", "run"],
        environment={"PATH": f"{python.parent}:{os.environ['PATH']}", "PYTHONPATH": ""},
        folder=checkout,
        ready="ready:",
        reconciles=PEER.reconciles,
        rests_after=RESTS_AFTER,
    )
