"""What the Events of a job say. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from dljob.kinds import Resource


def event_time(event: Resource) -> str:
    """When an Event happened last, RFC 3339."""
    series = event.get("series") or {}
    found = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return str(next((one for one in found if one), (event.get("metadata") or {}).get("creationTimestamp") or ""))


def event_rows(events: Iterable[Resource]) -> list[tuple[str, str, str, str, str]]:
    """Time, type, reason with its count, object and message of each Event."""
    rows = []
    for event in events:
        of = event.get("involvedObject") or {}
        count = int((event.get("series") or {}).get("count") or event.get("count") or 1)
        reason = str(event.get("reason") or "") + (f" x{count}" if count > 1 else "")
        message = str(event.get("message") or "").strip()
        rows.append(
            (
                event_time(event)[:19],
                str(event.get("type") or ""),
                reason,
                f"{of.get('kind')}/{of.get('name')}",
                message,
            )
        )
    return rows
