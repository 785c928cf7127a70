"""Adds to the status what the program of a job has reported."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.shared.progress import (
    PERIOD,
    RANKS,
    TRAINER_STATUS,
    UPDATED,
)

_SLACK = 5
"""Seconds that the engine may be early."""


def with_progress(
    old: Mapping[str, Any], new: Mapping[str, Any] | None, reported: Mapping[str, Any], now: datetime
) -> Mapping[str, Any] | None:
    """``new``, the status to write, with what is ``reported``; ``None`` where nothing is to be written.

    ``old`` is the job's status. For the progress alone one is written at most every :data:`PERIOD` seconds.
    """
    current = {name: reported[name] for name in (TRAINER_STATUS, RANKS) if reported.get(name)}
    if not current or all(old.get(name) == value for name, value in current.items()):
        return new
    if new is None and not _is_due(old, now):
        return None
    return {**(old if new is None else new), **current}


def _is_due(status: Mapping[str, Any], now: datetime) -> bool:
    passed = clock.seconds_since(as_mapping(status.get(TRAINER_STATUS)).get(UPDATED), now)
    return passed is None or passed < 0 or passed >= PERIOD - _SLACK
