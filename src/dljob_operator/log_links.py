"""Links to the logs of a job elsewhere, made of a template of the administrator's. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import quote

LINK_FIELDS = ("namespace", "name", "uid", "started", "ended", "started_ms", "ended_ms")
"""What a template may name, in braces: times as RFC 3339, or as milliseconds since 1970."""
_FIELD = re.compile(r"\{([^{}]*)\}")


def unknown_fields(template: str) -> list[str]:
    """The fields of a template that are none of `LINK_FIELDS`."""
    return [name for name in _FIELD.findall(template) if name not in LINK_FIELDS]


def fill(template: str, texts: Mapping[str, str], times: Mapping[str, datetime]) -> str:
    """Return the template with its fields, each quoted for an address; "" for an empty one."""
    values = {
        **texts,
        **{name: rfc3339(time) for name, time in times.items()},
        **{f"{name}_ms": str(round(time.timestamp() * 1000)) for name, time in times.items()},
    }
    return _FIELD.sub(lambda found: quote(values.get(found[1], found[0]), safe=""), template)


def rfc3339(time: datetime) -> str:
    """A time in UTC, in whole seconds."""
    return time.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
