"""Parses ``runPolicy.restartsWithin`` and checks it against the rest of the job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.fields import (
    Bounds,
    choice,
    integer,
    no_others,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import (
    RESTART_SCOPE_JOB,
    RESTART_SCOPE_REPLICA,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.pod_failure_policy import (
    ACTION_FAIL_JOB,
    ACTION_RESTART_JOB,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.restarts_within import (
    ACTIONS,
    LONGEST,
    MOST_RESTARTS,
    RestartsWithin,
)

PATH = "spec.runPolicy.restartsWithin"
_BOUNDS = {"count": Bounds(0, 0, MOST_RESTARTS), "seconds": Bounds(1, 1, LONGEST)}


def parse(given: Any, errors: list[str]) -> RestartsWithin | None:
    """The limit, ``None`` where the job has none. Adds what is wrong with it to ``errors``."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        errors.append(f"{PATH} must be a map with count and seconds")
        return None
    no_others(given, (*_BOUNDS, "action"), PATH, errors)
    numbers = {}
    for name, bounds in _BOUNDS.items():
        if given.get(name) is None:
            errors.append(f"{PATH}.{name} is missing: give a number from {bounds.least} to {bounds.most}")
        numbers[name] = integer(given.get(name), f"{PATH}.{name}", bounds, errors)
    action = given.get("action")
    action = choice(ACTION_FAIL_JOB if action is None else action, f"{PATH}.action", ACTIONS, errors)
    return RestartsWithin(numbers["count"], numbers["seconds"], action)


def conflicts(job: DLJob) -> Iterator[str]:
    """What of ``job`` contradicts it."""
    within = job.run_policy.restarts_within
    if within and within.action == ACTION_RESTART_JOB and job.run_policy.restart_scope == RESTART_SCOPE_JOB:
        yield (
            f"{PATH}.action is {ACTION_RESTART_JOB}, but with restartScope Job each failure restarts all replicas: use "
            f"{ACTION_FAIL_JOB}, or restartScope {RESTART_SCOPE_REPLICA}"
        )
