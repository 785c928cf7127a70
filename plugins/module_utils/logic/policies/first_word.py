"""Who says the first word on a job: the look that makes its pods, or the next one."""

from __future__ import annotations

from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Plan

LATEST = 1.0
"""Seconds that the first status may wait for a sign of life from the pods, the scheduler's or the kubelet's."""


def may_wait(job: DLJob, planned: Plan) -> bool:
    """Whether the first status may be left to the next look, where an engine watches the pods that are made now.

    A status costs the API server as much as four pods do (measured: 8 to 10 ms of a processor against 2.3). In a burst,
    the pods of jobs that still wait are worth more than the word that others have theirs; and of a job whose pods start
    at once, the first status is then already that it runs. Whatever is more than that pods were made is said at once.
    """
    return not job.status and bool(planned.pods) and not (planned.status or {}).get("reason")
