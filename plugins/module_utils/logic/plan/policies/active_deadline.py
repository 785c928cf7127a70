"""``runPolicy.activeDeadlineSeconds``: a job that is active for longer has failed."""

from __future__ import annotations

from datetime import datetime

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.failure import Failure
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob


def time_left(job: DLJob, started: str | None, now: datetime) -> float | None:
    """Seconds until ``activeDeadlineSeconds`` has passed (0 or less: it has), ``None`` where there is no deadline."""
    limit = job.run_policy.active_deadline_seconds
    ran = clock.seconds_since(started, now)
    return None if limit is None or ran is None else limit - ran


def overdue(job: DLJob, left: float | None, crash: str = "") -> Failure | None:
    """The failure of a job with that :func:`time_left`, ``None`` before.

    It quotes the ``crash`` of a replica that starts again and again, or else what the job was waiting for.
    """
    if left is None or left > 0:
        return None
    limit = job.run_policy.active_deadline_seconds
    reason = "" if job.status.get("phase") == c.PHASE_RUNNING else str(job.status.get("reason") or "")
    details = crash or (reason and f"not all of its replicas have run: {reason}")
    text = f"the job was active for longer than spec.runPolicy.activeDeadlineSeconds, {limit} s"
    return Failure(c.REASON_DEADLINE, f"{text}; {details}" if details else text)
