"""Read a report of a program: the body of a POST in the protocol of Kubeflow Trainer v2 (pkg/statusserver, 2.3).

What Trainer refuses as a whole is taken here as far as it is usable: a program must not repeat a report for one metric.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LARGEST = 64 * 1024
"""Bytes of a body, as in Trainer."""
_MOST_METRICS, _LONGEST = 256, 64
_MOST_SECONDS = 2**31 - 1
STEP_SECONDS = "step_seconds"
"""The metric by which ranks are compared: how long the last step of this rank took, without waiting for others."""


@dataclass(frozen=True)
class Report:
    """``percent`` is 0 to 100, ``remaining`` seconds; None is unknown. ``step_seconds`` is the metric of that name."""

    percent: int | None = None
    remaining: int | None = None
    metrics: tuple[tuple[str, str], ...] = ()
    step_seconds: float | None = None


def parse(body: bytes) -> Report | None:
    """The report, None for one without a trainerStatus. Raises ValueError with the field and the fix."""
    try:
        document = json.loads(body, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("the body is nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("the body is no JSON: write it as UTF-8") from None
    if not isinstance(document, dict):
        raise ValueError('the body must be a map: write {"trainerStatus": {...}}')
    given = document.get("trainerStatus")
    if given is None:
        return None
    if not isinstance(given, dict):
        raise ValueError("trainerStatus must be a map")
    metrics = tuple(_metrics(given.get("metrics")))
    return Report(
        _number(given, "progressPercentage", 100),
        _number(given, "estimatedRemainingSeconds", _MOST_SECONDS),
        metrics,
        _positive(dict(metrics).get(STEP_SECONDS)),
    )


def _refuse(text: str) -> Any:
    raise ValueError(f"the body is no JSON: it has {text}; leave out what is not known")


def _number(given: Mapping[str, Any], name: str, most: int) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise ValueError(f"trainerStatus.{name} must be a number from 0 to {most}")
    return int(value)


def _metrics(given: Any) -> list[tuple[str, str]]:
    """Those that the status may have: of names and values up to 64 characters, the first 256."""
    if given is not None and not isinstance(given, list):
        raise ValueError('trainerStatus.metrics must be a list: write [{"name": "loss", "value": "0.1"}]')
    found: dict[str, str] = {}
    for one in given or ():
        if isinstance(one, dict) and (name := _text(one.get("name"))) and (value := _text(one.get("value"))):
            found[name] = value
        if len(found) == _MOST_METRICS:
            break
    return list(found.items())


def _text(value: Any) -> str:
    """The text or the number, "" for what is none or not to be printed."""
    if isinstance(value, float | int) and not isinstance(value, bool):
        value = repr(value)
    return value if isinstance(value, str) and len(value) <= _LONGEST and value.isprintable() else ""


def _positive(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 < value < _MOST_SECONDS and math.isfinite(value) else None
