"""What a plan depends on besides the job and its objects."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.pods import CLUSTER_DOMAIN
from ansible_collections.dljob.operator.plugins.module_utils.shared.gang_scheduler import GangScheduler
from ansible_collections.dljob.operator.plugins.module_utils.shared.progress import Endpoint


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """What the operator sets for all jobs."""

    cluster_domain: str = CLUSTER_DOMAIN
    largest_slice: int | None = None
    """How many pods one plan creates at most, and how many objects it deletes; ``None`` for all."""
    gang: GangScheduler | None = None
    """The scheduler that starts the pods of a job together."""
    progress: Endpoint | None = None
    """Where programs report their progress."""


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """What a plan depends on besides the job and its objects."""

    now: datetime
    settings: PlanSettings
