"""Classification of a container's exit."""

from __future__ import annotations

from enum import Enum

from ansible_collections.dljob.operator.plugins.module_utils.values.constants import REASON_OOM
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import ExitCodes
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Termination


class ExitCodeClass(Enum):
    """Success, an error for which a retry may help, or a permanent error."""

    SUCCESS = "success"
    RETRYABLE = "retryable"
    PERMANENT = "permanent"


def classify_exit_code(end: Termination, codes: ExitCodes) -> ExitCodeClass:
    """Classify ``end``. OOMKilled is permanent by default, because a new process would need as much memory."""
    if end.code == 0:
        return ExitCodeClass.SUCCESS
    if end.reason == REASON_OOM and not codes.oom_retryable:
        return ExitCodeClass.PERMANENT
    return ExitCodeClass.RETRYABLE if end.code in codes.retryable else ExitCodeClass.PERMANENT
