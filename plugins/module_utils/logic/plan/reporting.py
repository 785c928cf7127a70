"""What an active job's status and Events say of this reconcile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import batch_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.pods import PodContext
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe import pod_ends
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan import gang_standing, ignored_settings
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import (
    crash_loops,
    creation_event,
    failure,
    losses,
    pod_creation,
    termination,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.losses import Losses
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import conditions
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import StatusBuilder, clip
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import PodToCreate


def phase(job: DLJob, report: StatusBuilder, up: bool, anew: bool) -> None:
    """Running once every replica is ``up``, and from then on: only a job begun ``anew`` goes back to Creating."""
    if up:
        report.running()
    on = job.status.get("phase") == c.PHASE_RUNNING and not anew
    report.phase(c.PHASE_RUNNING if up or on else c.PHASE_CREATING)


def wait(job: DLJob, going_on: Observed, found: Losses, report: StatusBuilder) -> None:
    """What the job waits for, or which of its replicas fail again and again."""
    held = (pod for pod in going_on.pods if pod.waiting and not pod.deleting)
    waiting = min(held, key=lambda pod: gang_standing.is_echo(pod.waiting), default=None)
    held_up = f"{pod_creation.subject(waiting)}: {waiting.waiting}" if waiting else ""
    if waiting and pod_creation.is_denied(waiting) and clip(held_up) != job.status.get("reason"):
        report.event("Warning", c.EVENT_NOT_CREATED, held_up)
    deciding = losses.without(going_on, found.uids | found.undecided)
    lost = "; ".join(failure.describe(p).message for p in failure.lost_pods(job, deciding))
    crash = crash_loops.first(going_on, job.status, found.uids)
    report.waiting(held_up or crash or (lost and f"the others go on: {lost}"))


def terminating(
    job: DLJob, pods: Sequence[PodState], awaited: Sequence[PodState], report: StatusBuilder, now: datetime
) -> None:
    """Report pods of a dead node: Kubernetes keeps them as terminating, and the job would wait without a reason. Where
    there is no other reason, report also the ``awaited`` pods that take longer than usual."""
    before = str(job.status.get("reason") or "")
    text = termination.on_lost_node(job, pods) or termination.stuck(pods, now)
    if text:
        if text != before:
            report.event("Warning", c.EVENT_NOT_TERMINATED, text)
        report.waiting(text)
    elif not report.reason:
        report.waiting(termination.noticed(awaited, now, before))


def created_pods(job: DLJob, observed: Observed, report: StatusBuilder) -> None:
    """Report the pods of a reconcile that deferred the creation Event to this one, or failed to write the status."""
    if observed.pods and not conditions.is_condition_true(conditions.read_conditions(job.status), c.CONDITION_CREATED):
        names = [pod.name for pod in observed.pods if pod.has_pod]
        launchers = [pod.name for pod in observed.pods if not pod.has_pod]
        report.event("Normal", c.EVENT_CREATED, creation_event.text(job, names, launchers))


def ignored(job: DLJob, context: PodContext, report: StatusBuilder) -> None:
    """Report what the operator ignores of the templates: until the job runs, and with each pod created later."""
    ignored = ignored_settings.find(job, context)
    report.ignored_settings(ignored, ignored_settings.message(ignored))


def unusual(job: DLJob, framework: Framework, spec_hash: str, report: StatusBuilder) -> None:
    """Warn once for a spec of types with more replicas than programs of the framework may accept."""
    if job.status.get("specHash") == spec_hash:
        return
    for type_ in framework.replica_types:
        group, most = job.group(type_.name), type_.expected_maximum
        if group is not None and most is not None and group.replicas > most:
            text = f"{group.path}.replicas is {group.replicas}: the programs may refuse more than {most} {type_.name}"
            report.event("Warning", c.EVENT_UNUSUAL, text)


def causes(job: DLJob, pods: Sequence[PodState]) -> list[PodState]:
    """Those of the pods for which all replicas restart that have failed or that a rule is about."""
    return [pod for pod in pods if pod_ends.has_failed(pod) or failure.action_for(job, pod)]


def created_so_far(
    job: DLJob, current: Observed, starts: Sequence[PodToCreate], pods: Sequence[Mapping[str, Any]]
) -> list[str]:
    """The names for the Event on the creation. That of a job which several reconciles create names the pods of all."""
    is_first = job.status.get("phase") != c.PHASE_RUNNING and not any(start.attempt for start in starts)
    earlier = [pod.name for pod in current.pods if pod.has_pod and not pod.deleting] if is_first else []
    return earlier + [pod["metadata"]["name"] for pod in pods if pod["kind"] != batch_job.KIND]
