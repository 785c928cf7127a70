"""Conversion of timestamps. Only ``api/`` reads the clock; here the time is an argument."""

from __future__ import annotations

from datetime import UTC, datetime


def stamp(moment: datetime) -> str:
    """RFC 3339 in UTC with whole seconds, the format of every Kubernetes status."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse(text: object) -> datetime | None:
    """The point in time in UTC, or ``None`` for what is not a timestamp: a tenant may write anything into a status
    without schema, a number or a map too, and a time that UTC has no year for."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def seconds_since(text: object, now: datetime) -> float | None:
    """Seconds from ``text`` to ``now``; ``None`` where ``text`` is not a timestamp."""
    moment = parse(text)
    return None if moment is None else (now - moment).total_seconds()


def seconds(text: object) -> int | None:
    """Whole seconds since 1970, which is all that a timestamp of Kubernetes has; ``None`` for what is none."""
    moment = parse(text)
    return None if moment is None else int(moment.timestamp())
