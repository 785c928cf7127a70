"""Whether pods of a job may be created now for its PodGroup of Kubernetes itself (``scheduling.k8s.io/v1beta1``).

- A group's priority cannot change. So a group whose job is edited stays as long as one of its pods goes on, and new
  pods get the priority and the scheduler of these; once none is left, it is deleted and made anew.
- A deleted group terminates until its last pod has ended. New pods wait for that, unless others go on in it.
- While pods of the group are missing, neither the group nor its pods say so: the status of the job does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.native_gang import (
    Spec,
    Traits,
    is_member,
    traits_of,
    with_defaults,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import termination
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.shared.gang_scheduler import POD_GROUP, GangScheduler
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, PodTemplate
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState

SILENT = 5.0
"""Seconds after which the status says that pods wait for their scheduler, which places a gang in less than one."""
RETRY = 5.0
"""Seconds until the next look at a group that terminates; its end triggers one too, if the operator may watch it."""
_ECHO = "minCount ("
"""In what the scheduler says of most pods of a gang that does not fit; it says the cause of one."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a job's group: what new pods get, and why there can be none."""

    traits: Traits | None = None
    """Of new pods; ``None`` with other schedulers, or where pods differ."""
    is_wanted: bool = True
    """Whether the group is to exist now."""
    problem: str = ""
    """Why no pod may be created now, as a sentence; "" where some may."""
    is_lasting: bool = False
    """Whether only a user can end that."""
    still_used: tuple[str, ...] = ()
    """The uid of a group that terminates and in which pods go on."""
    wait: float | None = None
    """Seconds until the next look."""


def standing(scheduler: GangScheduler | None, job: DLJob, observed: Observed) -> Standing:
    """The state of the group of ``job``; for other schedulers one that forbids nothing."""
    if scheduler is None or not scheduler.is_native:
        return Standing()
    templates = [one for group in job.groups for one in group.templates if one.indexes and is_member(one)]
    if not templates:
        return Standing()
    found = observed.owned_objects.get((scheduler.owned_kind, job.name))
    known = Traits.read(found.gang) if found else None
    goes_on = any(not pod.deleting for pod in _unfinished(scheduler, job, observed))
    wanted = {traits_of(job, one) for one in templates}
    if len(wanted) > 1:
        kept = known if goes_on else None
        return Standing(kept, is_wanted=kept is not None, problem=_difference(job, templates), is_lasting=True)
    (traits,) = wanted
    if found is None:
        return Standing(traits)
    if not goes_on:
        if found.deleting:
            text = termination.waiting([f"{POD_GROUP}/{job.name}"], str(job.status.get("reason") or ""))
            return Standing(traits, is_wanted=False, problem=text, wait=RETRY)
        if known != traits:
            text = f"{POD_GROUP}/{job.name} is made anew: it cannot get another priority or scheduler"
            return Standing(traits, is_wanted=False, problem=text, wait=RETRY)
        return Standing(traits)
    kept = known or traits
    used = (found.uid,) if found.deleting else ()
    for template in templates:
        own = with_defaults(template, kept)
        if own != kept:
            text = (
                f"{_differing(own, kept)} of {template.path} is {_value(own, kept)}, and the pods of the job's gang "
                f"that go on have {_value(kept, own)}: new pods wait until these have ended; suspend and resume the "
                "job to end them now"
            )
            return Standing(kept, problem=text, still_used=used)
    return Standing(kept, still_used=used)


def _difference(job: DLJob, templates: list[PodTemplate]) -> str:
    """Why these pod templates are no gang."""
    first = templates[0]
    ours = traits_of(job, first)
    other, theirs = next((one, found) for one in templates if (found := traits_of(job, one)) != ours)
    name = _differing(ours, theirs)
    return (
        f"all pods of a gang have the same {name}, but that of {first.path} is {_value(ours, theirs)} and that of "
        f"{other.path} is {_value(theirs, ours)}: no pod is created until they are the same"
    )


def _differing(one: Traits, other: Traits) -> str:
    """The field of a pod in which these differ."""
    return "schedulerName" if one.scheduler_name != other.scheduler_name else "priorityClassName"


def _value(one: Traits, other: Traits) -> str:
    """The value of that field in the first of them."""
    return one.scheduler_name if one.scheduler_name != other.scheduler_name else one.priority_class or "not set"


def _unfinished(scheduler: GangScheduler, job: DLJob, observed: Observed) -> Iterator[PodState]:
    """The pods that the scheduler counts to the group, and the batch Jobs that run some."""
    name = scheduler.pod_group(job.name)
    return (pod for pod in observed.pods if name in pod.pod_groups and pod.phase not in ("Succeeded", "Failed"))


def silence(scheduler: GangScheduler, job: DLJob, observed: Observed, group: Spec, now: datetime) -> str:
    """What Kubernetes does not say of pods that wait for their ``group``, a manifest; "" where none has waited long."""
    pods = [pod for pod in _unfinished(scheduler, job, observed) if pod.has_pod and not pod.deleting]
    left = [pod for pod in pods if _is_silent(pod)]
    if not left or _since(left, now) < SILENT:
        return ""
    least = group["spec"]["schedulingPolicy"]["gang"]["minCount"]
    if len(pods) < least:
        return f"{len(pods)} of {least} pods of the gang exist, and the scheduler starts none before the others"
    return f"{len(left)} of {len(pods)} pods of the gang wait for their scheduler, which gives no cause"


def next_check(scheduler: GangScheduler | None, job: DLJob, observed: Observed, now: datetime) -> float | None:
    """Seconds until :func:`silence` may have more to say, ``None`` where only a change brings that."""
    if scheduler is None or not scheduler.is_native:
        return None
    left = [pod for pod in _unfinished(scheduler, job, observed) if not pod.deleting and _is_silent(pod)]
    wait = SILENT - _since(left, now)
    return wait if left and wait > 0 else None


def _is_silent(pod: PodState) -> bool:
    """Whether the pod has no node, and nothing says why."""
    return pod.phase == "Pending" and not pod.node and not pod.waiting


def _since(pods: list[PodState], now: datetime) -> float:
    """Seconds since the creation of the first of ``pods``; at least 0, since clocks may differ."""
    return max((clock.seconds_since(pod.created, now) or 0.0 for pod in pods), default=0.0)


def is_echo(waiting: str) -> bool:
    """Whether the scheduler only repeats of a pod that its gang does not fit, the cause of which another pod has."""
    return _ECHO in waiting
