"""The settings of the controllers."""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.dljob.operator.plugins.module_utils.shared.gang_scheduler import GangScheduler

from dljob_operator import options

LARGEST_BATCH = 25
"""Jobs that one run reconciles together."""
LARGEST_SHARING = 400
"""Objects of a job that shares a run with others; one that owns more has a run of its own. A run gets all objects of
its jobs, and the memory of a worker must not depend on how many large jobs wait, as all do after a start."""


@dataclass(frozen=True)
class ControllerSettings:
    """Settings of a controller. Times are in seconds; empty `namespaces` means all."""

    namespaces: tuple[str, ...] = ()
    selector: str = ""
    """The controller reconciles only jobs that match this label selector."""
    max_concurrent: int = options.MAX_CONCURRENT_RECONCILES.of({})
    reconcile_period: float = options.RECONCILE_PERIOD.of({})
    run_timeout: float = options.RUN_TIMEOUT.of({})
    largest_batch: int = LARGEST_BATCH
    config_namespaces: tuple[str, ...] = ()
    """The namespaces of the operator's ConfigMap, most important first."""
    gang: GangScheduler | None = None
    """The scheduler that starts the pods of a job together: its PodGroups are watched."""
    kueue: bool = False
    """Whether the operator creates the Workloads by which Kueue queues jobs: they are watched."""
    progress: bool = False
    """Whether programs report their progress to this process."""
    usage: bool = False
    """Whether it keeps accounts of what jobs use: pods that are gone are kept until an account counts them."""
