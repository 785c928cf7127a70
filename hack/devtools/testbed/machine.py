"""Facts about the machine and the versions, for the reports."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

from devtools.paths import ROOT
from devtools.testbed.client import Client

_MEASURED = ("src", "plugins", "roles", "watches.yaml")


def facts(client: Client, nodes: int) -> dict[str, str]:
    """The machine, the cluster and the versions."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("ansible-core", "ansible-runner", "kubernetes"))
    return {
        "machine": f"{os.cpu_count()} processors, {processor()}, {_memory_gib():.0f} GiB, Linux {platform.release()};"
        " API server, etcd, kwok and the peers share it",
        "load when it began": f"{os.getloadavg()[0]:.2f}",
        "cluster": f"kind, Kubernetes {client.request('GET', '/version')['gitVersion']}, {nodes} kwok nodes",
        "this operator": f"commit {commit()}, Python {platform.python_version()}, {libraries}",
    }


def commit() -> str:
    """The last commit that changed the operator, ignoring its benchmark and documentation."""
    return _git("log", "-1", "--format=%h") + ("-dirty" if _git("status", "--porcelain") else "")


def processor() -> str:
    found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return found[1].strip() if found else platform.machine()


def _memory_gib() -> float:
    found = re.search(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    return int(found[1]) / 2**20 if found else 0.0


def _git(*arguments: str) -> str:
    command = ["git", *arguments, "--", *_MEASURED]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
