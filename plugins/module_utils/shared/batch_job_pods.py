"""Which job's replica runs in a pod that a batch Job has created.

The operator deletes such a batch Job in the foreground, so that Kubernetes deletes its pods first. But the garbage
collector knows only of the pods that its watch has shown, and where this is interrupted, as by a restart of the API
server, the batch Job may be gone while a pod runs. Its labels still say whose replica it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.controller_reference import controller_of
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import LABEL_JOB_UID

FAILED_BEFORE = "failedBefore"
"""Key of an object of the engine's cache that is the last known state of a failed pod of a batch Job. The pod may be
gone: under ``restartPolicy: OnFailure`` the Job controller deletes it when it has failed too often."""


def labelled_job(pod: Mapping[str, Any]) -> str | None:
    """The UID of the job whose replica a batch Job runs in ``pod``; ``None`` for a pod that no batch Job controls.

    A user may write any UID into the label, so it may delay the pods of that job in its namespace, and no more.
    """
    found = (pod["metadata"].get("labels") or {}).get(LABEL_JOB_UID) if is_of_batch_job(pod) else None
    return None if found is None else str(found)


def is_of_batch_job(pod: Mapping[str, Any]) -> bool:
    """Whether a batch Job controls ``pod``."""
    controller = controller_of(pod)
    return controller is not None and (controller.get("apiVersion"), controller.get("kind")) == ("batch/v1", "Job")
