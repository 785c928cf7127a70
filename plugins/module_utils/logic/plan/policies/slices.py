"""How much of a job one reconcile writes: a slice, so that no job occupies a worker for long.

The next reconcile plans the rest from what exists then. So the memory of a plan does not grow with ``replicas``, and a
job that was deleted, suspended or edited in the meantime stops; see :mod:`..api.budget`.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TypeVar

from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Plan, PodToCreate

Service = TypeVar("Service")

LARGEST = 1000
"""Pods, and Services of single replicas, that one reconcile creates at most, and objects that it deletes at most.
:mod:`..api.budget` has the limit in seconds, which usually comes first."""
LARGEST_BESIDE_OTHERS = 256
"""The same for each write at a time while users wait for other jobs: in four seconds the window usually permits fewer,
and a plan of a thousand pods keeps a processor from the other jobs for 50 ms."""
BYTES = 8 * 1024 * 1024
"""Size of the templates, as JSON, of the pods that one reconcile creates at most, beside the first pod: each pod has a
copy of its template, which takes about twice as much memory."""

FREE_SERVICES = 2
"""Services that a reconcile creates whatever its time: as many as a job without one a replica has."""


def largest_slice(window: int | None) -> int:
    """How many pods a plan may create whose reconcile sends ``window`` writes at a time; ``None`` is no limit."""
    return LARGEST if window is None else min(LARGEST, LARGEST_BESIDE_OTHERS * window)


def first_starts(starts: tuple[PodToCreate, ...], largest: int | None) -> tuple[PodToCreate, ...]:
    """The pods that this reconcile creates; ``largest`` is ``None`` where one reconcile has to create all."""
    if largest is None or len(starts) <= 1:
        return starts  # the first pod is created whatever its size
    count, left = 0, BYTES
    sizes: dict[tuple[str, str], int] = {}  # by replica type and group
    for start in starts[:largest]:
        template = start.group.template_of(start.index)
        key = start.group.type, template.group
        if key not in sizes:
            sizes[key] = len(json.dumps(template.template))
        left -= sizes[key]
        if left < 0 < count:
            break
        count += 1
    return starts[:count]


def first_services(missing: list[Service], largest: int | None) -> list[Service]:
    """Those of the ``missing`` Services that this reconcile creates: no fewer than those of its pods."""
    return missing if largest is None else missing[: largest + FREE_SERVICES]


def cut_deletions(plan: Plan, largest: int | None) -> Plan:
    """``plan`` with at most ``largest`` deletions; the next reconcile, which is due immediately, plans the others."""
    if largest is None or len(plan.deletions) <= largest:
        return plan
    return dataclasses.replace(plan, deletions=plan.deletions[:largest], requeue_after=0.0, is_partial=True)
