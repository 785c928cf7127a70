"""Conversion of timestamps. Only ``api/`` reads the clock; here the time is an argument."""

from __future__ import annotations

from datetime import UTC, datetime


def stamp(moment: datetime) -> str:
    """RFC 3339 in UTC with whole seconds, the format of every Kubernetes status."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse(text: str | None) -> datetime | None:
    """The point in time, or ``None`` where the text is missing or not a timestamp."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def seconds_since(text: str | None, now: datetime) -> float | None:
    """Seconds from ``text`` to ``now``; ``None`` where ``text`` is not a timestamp."""
    moment = parse(text)
    return None if moment is None else (now - moment).total_seconds()
