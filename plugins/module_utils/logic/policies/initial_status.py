"""Who says the first word on a job, in its status and by an Event: the look that makes its pods, or the next one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed

LATEST = 1.0
"""Seconds after which a job is looked at again for its first status, if its pods show no sign of life before: neither
the scheduler's nor the kubelet's."""


def can_defer(job: DLJob, observed: Observed, status: Mapping[str, Any] | None) -> bool:
    """Whether the first status, and the Event on the pods' creation, may be left to the next look.

    That is where an engine watches the pods that are made now. Of a job that owned nothing before, so at most once.

    A status costs the API server as much as four pods do, an Event half of one (measured: 8 to 10 and 1.3 ms of a
    processor against a pod's 2.3). In a burst, the pods of jobs that still wait are worth more than the word that
    others have theirs; and of a job whose pods start at once, the first status is then already that it runs. Whatever
    is more than that pods were made is said at once. What others find the job by is not put off: a Service whose name
    is taken ends a job before its pods have worked in vain.
    """
    if job.status or observed.pods or observed.services:
        return False
    return not (status or {}).get("reason")
