"""Parses ``runPolicy.stallPolicy``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.fields import (
    Bounds,
    choice,
    integer,
    no_others,
)
from ansible_collections.dljob.operator.plugins.module_utils.shared.progress import NO_RANK
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.stall_policy import (
    ACTION_EVENT,
    ACTIONS,
    LONGEST,
    SHORTEST,
    StallPolicy,
)

PATH = "spec.runPolicy.stallPolicy"
_TIMES = ("startSeconds", "noProgressSeconds")
_BOUNDS = Bounds(SHORTEST, SHORTEST, LONGEST)


def parse(given: Any, errors: list[str]) -> StallPolicy | None:
    """The policy, ``None`` where the job has none. Adds what is wrong with it to ``errors``."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        errors.append(f"{PATH} must be a map with startSeconds or noProgressSeconds")
        return None
    no_others(given, (*_TIMES, "action"), PATH, errors)
    times = {
        name: integer(given[name], f"{PATH}.{name}", _BOUNDS, errors) if given.get(name) is not None else None
        for name in _TIMES
    }
    if all(time is None for time in times.values()):
        errors.append(f"{PATH} needs a time: add startSeconds or noProgressSeconds")
    action = given.get("action")
    action = choice(ACTION_EVENT if action is None else action, f"{PATH}.action", ACTIONS, errors)
    return StallPolicy(times["startSeconds"], times["noProgressSeconds"], action)


def conflicts(job: DLJob) -> Iterator[str]:
    """What of ``job`` contradicts it."""
    if job.run_policy.stall_policy and job.run_policy.progress == NO_RANK:
        yield f"{PATH} needs the reports of progress that spec.runPolicy.progress {NO_RANK} forbids: remove one of them"
