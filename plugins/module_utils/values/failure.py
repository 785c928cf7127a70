"""Why a job failed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a job failed."""

    reason: str
    message: str
    pod: str = ""
    container: str = ""
    exit_code: int | None = None
    log: str = ""
    """The end of the container's log or its termination message, or the message of the component that ended the pod.
    ``message`` quotes its last lines."""
