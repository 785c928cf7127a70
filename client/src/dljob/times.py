"""Times of the API."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any


def time_of(value: Any) -> datetime | None:
    """A time of the API, UTC where it names no zone; ``None`` for anything else."""
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
