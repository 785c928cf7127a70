"""``runPolicy.ttlSecondsAfterFinished``: when the operator deletes a finished job."""

from __future__ import annotations

from datetime import datetime

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.values.job import JobRecord


def time_to_live(job: JobRecord, completed: str | None, now: datetime) -> float | None:
    """Seconds until the operator deletes the finished job (0 or less: now), ``None`` where it keeps the job."""
    ttl = job.run_policy.ttl_seconds_after_finished
    ago = clock.seconds_since(completed, now)
    return None if ttl is None or ago is None else ttl - ago
