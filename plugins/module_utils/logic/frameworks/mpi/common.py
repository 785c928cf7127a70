"""What the MPIJobs of both API versions have in common: the ConfigMap with the list of hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Cluster

DISCOVER_HOSTS = "discover_hosts.sh"
"""The script by which elastic Horovod learns of its hosts."""
CONFIG_VOLUME = "mpi-job-config"
LABEL_INDEX = "training.kubeflow.org/replica-index"
_MOST_SLOTS = 2**31 - 1


def slots_errors(cluster: Cluster) -> Iterator[str]:
    """The errors of ``slotsPerWorker``."""
    slots = cluster["spec"].get("slotsPerWorker")
    if slots is not None and (isinstance(slots, bool) or not isinstance(slots, int) or not 1 <= slots <= _MOST_SLOTS):
        yield f"spec.slotsPerWorker is {slots!r}: it must be a whole number of at least 1"


def config_name(job: str) -> str:
    return f"{job}-config"


def config_volume(job: str, modes: Mapping[str, int]) -> dict[str, Any]:
    """The volume with those files of the ConfigMap, each with its mode."""
    items = [{"key": name, "path": name, "mode": mode} for name, mode in modes.items()]
    return {"name": CONFIG_VOLUME, "configMap": {"name": config_name(job), "items": items}}
