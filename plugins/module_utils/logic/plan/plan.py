"""One reconcile as a function: from the job, its framework, what is there and the time, to what is to be done.

Pure. The order of the questions is the life of a job: is it ours, is it over, is it suspended, has it just ended, and
only then which pods it lacks.
"""

from __future__ import annotations

import dataclasses
from datetime import datetime

from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import managers
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan import at_rest, reporting
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.active import active
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.inputs import PlanInputs, PlanSettings
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import (
    service_scope,
    slices,
    suspension,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import (
    StatusBuilder,
    has_finished,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Fact, Plan, presume

_DEFAULTS = PlanSettings()


def plan(
    job: DLJob, framework: Framework, observed: Observed, now: datetime, settings: PlanSettings = _DEFAULTS
) -> Plan:
    """What to do for ``job`` at ``now``. With nothing to do the plan is empty: no write, no event."""
    if not managers.is_ours(job):
        return Plan()
    whole = _plan(service_scope.settled(job, observed), framework, observed, PlanInputs(now, settings))
    return slices.cut_deletions(whole, settings.largest_slice)


def _plan(job: DLJob, framework: Framework, observed: Observed, inputs: PlanInputs) -> Plan:
    now = inputs.now
    report = StatusBuilder(job, now)
    if has_finished(job):
        return at_rest.finished(job, framework, observed, report, now)
    reporting.created_pods(job, observed, report)
    if job.run_policy.suspend:
        return at_rest.suspended(job, framework, observed, report)
    planned = active(job, framework, observed, report, inputs)
    survivors = suspension.survivors(job.status, observed)
    return dataclasses.replace(planned, presumes=(*planned.presumes, *presume({Fact.IS_KEPT: survivors})))
