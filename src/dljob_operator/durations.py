"""Go's duration notation ("1h30m", "500ms"), which Kubernetes and watches.yaml use.

Hand-written because durationpy 0.11 accepts more than Go does: days to years ("1d"), and any text between two parts
("1h!!30m"). ansible-operator parses the same watches.yaml with Go and would refuse it.
"""

from __future__ import annotations

import re

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d++(?:\.\d*+)?|\.\d++)(ns|us|µs|μs|ms|s|m|h)")
_SHOWN = 40  # characters of a wrong text in a message


def parse_duration(text: object) -> float:
    """Parse a duration and return it in seconds, in a time linear in the length of `text`, which a tenant chooses.

    Raises ValueError, whose message shows the notation, unless `text` is a Go duration of zero or more.
    """
    hint = 'write a Go duration such as "30s", "5m" or "1h30m"'
    if not isinstance(text, str):
        raise ValueError(f"{text!r} is not a duration; {hint}")
    if text == "0":
        return 0.0
    if text.startswith("-"):
        raise ValueError(f"{_shown(text)} is negative; {hint}")
    body = text.removeprefix("+")
    seconds, position = 0.0, 0
    # match() and not finditer(), which would search for a part from every position of a text without one
    while part := _PART.match(body, position):
        seconds += float(part[1]) * _UNITS[part[2]]
        position = part.end()
    if not body or position != len(body):
        raise ValueError(f"{_shown(text)} is not a duration; {hint}")
    return seconds


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")
