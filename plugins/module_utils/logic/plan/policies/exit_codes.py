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
    """Classify ``end``. OOMKilled is permanent by default, because a new process would need as much memory.

    Where it is retryable, its code does not matter: torchrun exits with 1 once the kernel has killed its worker.
    """
    if end.code == 0:
        return ExitCodeClass.SUCCESS
    if end.reason == REASON_OOM:
        return ExitCodeClass.RETRYABLE if codes.oom_retryable else ExitCodeClass.PERMANENT
    return ExitCodeClass.RETRYABLE if end.code in codes.retryable else ExitCodeClass.PERMANENT
