"""How much of a job one reconcile writes: a slice, so that no job occupies a worker for long.

The next reconcile plans the rest from what exists then. So the memory of a plan does not grow with ``replicas``, and a
job that was deleted, suspended or edited in the meantime stops after the current slice.
"""

from __future__ import annotations

import dataclasses

from ansible_collections.dljob.operator.plugins.module_utils.logic.policies.replicas import PodToCreate
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Plan

LARGEST = 500
"""Pods that one reconcile creates at most, and objects that it deletes at most. :mod:`..api.budget` has the limit in
seconds, which usually comes first."""


def first_starts(starts: tuple[PodToCreate, ...], largest: int | None) -> tuple[PodToCreate, ...]:
    """The pods that this reconcile creates; ``largest`` is ``None`` where one reconcile has to create all."""
    return starts if largest is None else starts[:largest]


def cut_deletions(plan: Plan, largest: int | None) -> Plan:
    """``plan`` with at most ``largest`` deletions; the next reconcile, which is due immediately, plans the others."""
    if largest is None or len(plan.deletions) <= largest:
        return plan
    return dataclasses.replace(plan, deletions=plan.deletions[:largest], requeue_after=0.0, is_partial=True)
