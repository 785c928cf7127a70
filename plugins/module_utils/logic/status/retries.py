"""The counts of restarts in the status."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob


def key(type_: str, index: int) -> str:
    """The key of a replica in the status: ``worker-0``."""
    return f"{type_.lower()}-{index}"


def retries_of(job: DLJob, field: str = "retries") -> dict[str, int]:
    """Number of replacement pods by ``<type>-<index>``. The status stores it, because it must outlive the pods."""
    retries = job.status.get(field)
    return {str(k): v for k, v in retries.items() if isinstance(v, int)} if isinstance(retries, Mapping) else {}
