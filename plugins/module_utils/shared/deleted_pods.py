"""The pods of a job that an engine has seen go, as its cache hands them to the reconcile.

They are a list under the kind ``DeletedPods``, which is of no API: first ``{"watch": <name of the engine's process>,
"since": <RFC 3339>}``, then each pod in its last state, with ``{"deleted": {"number": <counted from 1>, "at": <RFC
3339>}}``. The job's status names the last one that it counts, as ``<watch>/<number>``; the engine then drops it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DELETED_PODS = "DeletedPods"
DELETED = "deleted"
USAGE, COUNTED = "usage", "counted"
"""The fields of the status: the account of the job's usage, and the last pod that it counts."""


def account_in(job: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The account in the status of a job; empty where there is none, and for what is no status."""
    status = (job or {}).get("status")
    usage = status.get(USAGE) if isinstance(status, Mapping) else None
    return usage if isinstance(usage, Mapping) else {}


def header(watch: str, since: str) -> dict[str, str]:
    """The first of the list."""
    return {"watch": watch, "since": since}


def marked(pod: Mapping[str, Any], number: int, at: str) -> dict[str, Any]:
    """A pod that was gone ``at`` a time (RFC 3339)."""
    return {**pod, DELETED: {"number": number, "at": at}}


def counted(watch: str, number: int) -> str:
    """The text of the status."""
    return f"{watch}/{number}" if watch else ""


def read_counted(text: object) -> tuple[str, int]:
    """The watch and the number in the text of a status; "" and 0 for anything else."""
    watch, slash, number = text.partition("/") if isinstance(text, str) else ("", "", "")
    is_number = slash and number.isascii() and number.isdecimal() and len(number) < 16
    return (watch, int(number)) if is_number else ("", 0)
