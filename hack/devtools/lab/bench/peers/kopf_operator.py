"""A kopf operator that creates the same objects."""

from __future__ import annotations

import sys
from pathlib import Path

from devtools.lab.bench import tools
from devtools.lab.bench.peers.base import PROGRAMS, Limits, Peer


def _command(kubeconfig: Path, scratch: Path) -> list[str]:
    program = str(PROGRAMS / "kopf_operator.py")
    return [sys.executable, "-m", "kopf", "run", "--standalone", "--all-namespaces", program]


PEER = Peer(
    name="kopf",
    title=f"kopf {tools.KOPF.removeprefix('kopf==')}",
    command=_command,
    ready="Initial authentication has finished",
    environment={"PYTHONPATH": str(tools.packages(tools.KOPF))},
    limits=Limits(lasting=False, timeout=180.0),
    prepare=lambda kubeconfig: tools.ensure(tools.KOPF),
)
