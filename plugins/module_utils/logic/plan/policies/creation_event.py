"""The Event on the pods that a reconcile creates: the first ones of a job, and every one that is created again.

Most Events report a change of the status, and are written only with it. A pod that replaces a deleted one changes
nothing there: its replica was pending before, and still is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import conditions
from ansible_collections.dljob.operator.plugins.module_utils.shared.event import EventNote
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.apply_result import ApplyResult
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Plan

_KINDS = ("Pod", "Job")


def text(job: DLJob, names: Sequence[str], launchers: Sequence[str] = ()) -> str:
    """The message about pods with these ``names``.

    ``launchers`` are the names of batch Jobs without a pod: Kubernetes creates that, or may not.
    """
    shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    texts = [f"Created {len(names)} of {job.total} pods: {shown}"] if names else []
    texts += [f"{'t' if texts else 'T'}he pod of batch Job {name} follows" for name in launchers]
    return "; ".join(texts)


def only(events: Iterable[EventNote]) -> tuple[EventNote, ...]:
    """Those of ``events`` that are about created pods."""
    return tuple(event for event in events if event.reason == c.EVENT_CREATED)


def without(events: Iterable[EventNote]) -> tuple[EventNote, ...]:
    """The others."""
    return tuple(event for event in events if event.reason != c.EVENT_CREATED)


def of_result(job: DLJob, plan: Plan, result: ApplyResult) -> tuple[EventNote, ...]:
    """The Events on the pods that were created of those of ``plan``.

    Until all pods of a job exist for the first time, the Event waits for the last of them, and names all.
    """
    withdrawn = set(result.deleted)
    made = [name for name in result.created_of(*_KINDS) if name not in withdrawn]
    pods, launchers = ([name.partition("/")[2] for name in made if name.startswith(f"{kind}/")] for kind in _KINDS)
    if not made:
        return ()
    if len(made) >= len(plan.pods):
        return only(plan.events)
    return (EventNote("Normal", c.EVENT_CREATED, text(job, pods, launchers)),) if _has_run(job) else ()


def _has_run(job: DLJob) -> bool:
    return job.status.get("phase") == c.PHASE_RUNNING


def is_recorded(resource: Mapping[str, Any]) -> bool:
    """Whether the status of the job says that it has been created. Until then the next reconcile reports its pods."""
    found = conditions.read_conditions(as_mapping(resource.get("status")))
    return conditions.is_condition_true(found, c.CONDITION_CREATED)
