"""The causes as text for people, and as data for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from dljob.output import duration, printable
from dljob.view import JobView
from dljob.why.model import Cause, Severity

_COLORS = {Severity.ERROR: 31, Severity.WARNING: 33, Severity.INFO: 36}


def data(causes: Sequence[Cause]) -> list[dict[str, Any]]:
    """For JSON and YAML; ``since`` is RFC 3339 or null."""
    return [
        {**asdict(one), "severity": str(one.severity), "since": one.since.isoformat() if one.since else None}
        for one in causes
    ]


def lines(job: JobView, causes: Sequence[Cause], now: datetime, *, colored: bool = False) -> Iterator[str]:
    """One block a cause: severity, sentence and age, the words of each object, and the fix."""
    if not causes:
        yield f"Nothing is wrong: {printable(job.key)} is {printable(job.state)}, {printable(job.ready)} replicas are ready."
    for number, one in enumerate(causes):
        if number:
            yield ""
        label = f"\x1b[{_COLORS[one.severity]}m{one.severity}\x1b[0m" if colored else str(one.severity)
        age = f" (for {duration((now - one.since).total_seconds())})" if one.since else ""
        yield f"{label}: {printable(one.sentence)}{age} [{one.id}]"
        for quoted in one.evidence:
            yield f"  {printable(quoted.object)}: {printable(quoted.words)}"
        yield f"  Fix: {printable(one.fix)}"
