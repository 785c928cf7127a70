"""Which jobs a user looks for. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from dljob.output import COLUMNS
from dljob.view import JobView

LONGEST = 200
"""Characters of what is looked for; further ones do not count."""
MOST_WORDS = 20
_FIELDS: Mapping[str, str] = {"ns": "NAMESPACE", **{name.lower(): name for name in COLUMNS}}


def matches(job: JobView, text: str) -> bool:
    """Whether every word of ``text`` is in some column of the job, or ``column:word`` in that one; in any case.

    Of a longer text the first ``LONGEST`` characters and ``MOST_WORDS`` words count.
    """
    words = text[:LONGEST].lower().split()[:MOST_WORDS]
    if not words:
        return True
    columns = {name: column(job).lower() for name, column in COLUMNS.items()}
    whole = "\n".join(columns.values())  # no word has an end of a line
    for word in words:
        field, colon, value = word.partition(":")
        found = value in columns[_FIELDS[field]] if colon and field in _FIELDS else word in whole
        if not found:
            return False
    return True
