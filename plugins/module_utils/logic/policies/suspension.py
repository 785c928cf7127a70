"""The steps of a suspension, each of which the next reconcile finds recorded, whatever becomes of this one.

1. The status forgets which replicas have completed. Their pods are deleted too, and a job that is resumed before the
   last step would not start them again.
2. All pods are deleted. The other progress stays: it belongs to pods that a denied request may leave.
3. The status says that the job is suspended, and forgets the rest. By this one Kueue gives the quota away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PROGRESS = ("completed", "retries", "ignoredRetries", "specHash")
"""The fields of the status that a suspended job loses."""


def has_completed(status: Mapping[str, Any]) -> bool:
    """Whether the first step is due."""
    return "completed" in status


def without_completed(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """The status after the first step."""
    return {name: value for name, value in status.items() if name != "completed"}
