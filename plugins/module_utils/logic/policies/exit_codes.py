"""What a container's end means for the job."""

from __future__ import annotations

from enum import Enum

from ansible_collections.dljob.operator.plugins.module_utils.values.constants import REASON_OOM
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import ExitCodes
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Termination


class ExitCodeClass(Enum):
    """Success, an error that another try may cure, or one that it will not."""

    SUCCESS = "success"
    RETRYABLE = "retryable"
    PERMANENT = "permanent"


def classify_exit_code(end: Termination, codes: ExitCodes) -> ExitCodeClass:
    """Judge ``end``. A process killed for want of memory is permanent: the next one wants as much."""
    if end.code == 0:
        return ExitCodeClass.SUCCESS
    if end.reason == REASON_OOM and not codes.oom_retryable:
        return ExitCodeClass.PERMANENT
    return ExitCodeClass.RETRYABLE if end.code in codes.retryable else ExitCodeClass.PERMANENT
