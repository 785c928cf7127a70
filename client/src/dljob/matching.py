"""Which jobs a user looks for. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from dljob.output import COLUMNS
from dljob.view import JobView

_FIELDS: Mapping[str, str] = {"ns": "NAMESPACE", **{name.lower(): name for name in COLUMNS}}


def matches(job: JobView, text: str) -> bool:
    """Whether every word of ``text`` is in some column of the job, or ``column:word`` in that one; in any case."""
    for word in text.lower().split():
        field, colon, value = word.partition(":")
        if colon and field in _FIELDS:
            if value not in COLUMNS[_FIELDS[field]](job).lower():
                return False
        elif not any(word in column(job).lower() for column in COLUMNS.values()):
            return False
    return True
