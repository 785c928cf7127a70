"""What `explain` reads, and what it answers."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Object = Mapping[str, Any]
"""An object as the API server answers it."""


class Severity(enum.StrEnum):
    """How bad it is; the first is listed first."""

    ERROR = "error"
    """Nothing goes on until somebody acts."""
    WARNING = "warning"
    """It costs time or restarts, and may go away."""
    INFO = "info"
    """It waits as its owner wants."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an object says itself."""

    object: str
    """``<kind>/<name>``."""
    words: str


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a job does not go on, or has failed."""

    id: str
    severity: Severity
    sentence: str
    evidence: tuple[Evidence, ...]
    since: datetime | None
    """``None`` where no object tells."""
    fix: str


@dataclass(frozen=True, slots=True)
class Unread:
    """Objects that the user may not read, and the right that is missing."""

    what: str
    """Name of the field of :class:`Snapshot`."""
    right: str
    """Such as ``list nodes``."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A job and what is around it. Fields that do not matter for the state of the job may be empty."""

    job: Object
    now: datetime
    pods: tuple[Object, ...] = ()
    """Of the job, its launcher included."""
    events: tuple[Object, ...] = ()
    """Of the namespace."""
    nodes: tuple[Object, ...] = ()
    neighbours: tuple[Object, ...] = ()
    """Pods of all namespaces that hold resources of nodes."""
    quotas: tuple[Object, ...] = ()
    limit_ranges: tuple[Object, ...] = ()
    pod_groups: tuple[Object, ...] = ()
    """Of the job, of any gang scheduler."""
    workloads: tuple[Object, ...] = ()
    """Kueue's, of the namespace."""
    local_queues: tuple[Object, ...] = ()
    cluster_queues: tuple[Object, ...] = ()
    pending_workloads: tuple[Object, ...] = ()
    """Kueue's answer about the positions in the job's queue."""
    claims: tuple[Object, ...] = ()
    """The PersistentVolumeClaims that the pods name."""
    leases: tuple[Object, ...] = ()
    """Of operators for such jobs."""
    deployments: tuple[Object, ...] = ()
    """Of operators for such jobs, and of the cluster's DNS."""
    services: tuple[Object, ...] = ()
    """Of the job."""
    unread: tuple[Unread, ...] = ()

    def could_read(self, what: str) -> bool:
        """Whether an empty field ``what`` means that there is none."""
        return all(one.what != what for one in self.unread)
