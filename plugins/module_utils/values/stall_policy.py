"""``runPolicy.stallPolicy``: what follows once the programs of a running job report no progress any more."""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.dljob.operator.plugins.module_utils.values.pod_failure_policy import (
    ACTION_FAIL_JOB,
    ACTION_RESTART_JOB,
)

ACTION_EVENT = "Event"
ACTIONS = (ACTION_EVENT, ACTION_RESTART_JOB, ACTION_FAIL_JOB)
SHORTEST, LONGEST = 30, 31_536_000
"""Of both times: programs report every few seconds at most, and a year."""


@dataclass(frozen=True, slots=True)
class StallPolicy:
    """Times are in seconds; ``None`` is no limit."""

    start_seconds: int | None = None
    """From when all replicas run until the first report."""
    no_progress_seconds: int | None = None
    """From one report to the next."""
    action: str = ACTION_EVENT
