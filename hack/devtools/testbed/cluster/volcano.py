"""Volcano as two processes on this machine, its scheduler and its controllers, with the manifests of its own Go module.

Its webhooks are left out: they check and complete Volcano's own jobs and queues, and here is one queue.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from devtools.definitions import documents
from devtools.testbed.base import gobuild
from devtools.testbed.base.settings import Settings
from devtools.testbed.cluster import lifecycle

MODULE = "volcano.sh/volcano"
SCHEDULER, CONTROLLERS = gobuild.VOLCANO.binaries
QUEUE = "default"
"""The queue that the scheduler creates, and that a PodGroup without a queue is in."""
NEEDED_CONTROLLERS = ("queue-controller", "pg-controller")
"""Those of queues and of groups. The others are for Volcano's own jobs."""

Manifest = dict[str, Any]


def programs(settings: Settings) -> Path:
    """The folder with the two programs, compiled if necessary. Starts the cluster if it is not up."""
    return lifecycle.compiled(settings, gobuild.VOLCANO, "Volcano").parent


def chart(settings: Settings) -> Path:
    """The folder of Volcano's chart in Go's module cache, downloaded if necessary."""
    module = gobuild.module_dir(settings.go_dir, gobuild.VOLCANO.module, MODULE)
    return module / "installer" / "helm" / "chart" / "volcano"


def definitions(folder: Path) -> list[Manifest]:
    """The CRDs of a ``chart``."""
    files = sorted((folder / "crd" / "bases").glob("*.yaml"))
    return [one for file in files for one in documents(file)]


def commands(programs: Path, folder: Path, kubeconfig: Path) -> dict[str, list[str]]:
    """By name, the two processes' commands: the scheduler has the configuration of the ``chart`` in ``folder``."""
    common = ["--kubeconfig", str(kubeconfig), "--leader-elect=false", "--v", "2"]
    configuration = folder / "config" / "volcano-scheduler.conf"
    return {
        SCHEDULER: [
            str(programs / SCHEDULER), *common, "--scheduler-conf", str(configuration), "--cache-dumper=false",
        ],
        CONTROLLERS: [str(programs / CONTROLLERS), *common, "--controllers", ",".join(NEEDED_CONTROLLERS)],
    }  # fmt: skip
