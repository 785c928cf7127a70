"""The PodGroup of a job, by which a gang scheduler starts its pods together or not at all.

The contract is training-operator's (`pkg/controller.v1/common/job.go` and `scheduling.go` of 1.9): the group has the
job's name, Volcano finds its pods by an annotation and the coscheduling plugin by a label, and the group exists while
the job is neither suspended nor finished. It differs in the number of members: a scheduler waits until so many pods of
the group can run, and here it never waits for one that does not come, unless ``minAvailable`` is more than the job has
replicas. No replica counts that

- has succeeded, or has failed for good, so that another one may restart;
- is of a type that waits for others in the start order: the group grows with each stage;
- has a pod without this group, as in a job that ran before the administrator has set the scheduler;
- has another scheduler by its template.

:mod:`.native_gang` has what differs for the groups of Kubernetes itself, which find their pods by a field.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import native_gang, owned_objects
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import quantities
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.pod_requests import (
    Quantities,
    largest,
    requested,
    summed,
)
from ansible_collections.dljob.operator.plugins.module_utils.shared.gang_scheduler import (
    ANNOTATION_POD_GROUP,
    ANNOTATION_QUEUE,
    ANNOTATION_TASK,
    LABEL_POD_GROUP,
    NATIVE,
    POD_GROUP,
    SCHEDULING_GROUP,
    GangScheduler,
)
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import OWNED_KINDS
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.accelerators import ALPHA_GPU
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, PodTemplate
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState

Manifest = Mapping[str, Any]
"""By the name of a resource."""


def applicable(scheduler: GangScheduler | None, job: DLJob, observed: Observed) -> GangScheduler | None:
    """``scheduler``, unless the job has pods that are left to it and none of them is in its group."""
    if scheduler is None:
        return None
    name, left = scheduler.pod_group(job.name), [pod for pod in observed.pods if _is_left_to(scheduler, job, pod)]
    return scheduler if not left or any(name in pod.pod_groups for pod in left) else None


def _is_left_to(scheduler: GangScheduler, job: DLJob, pod: PodState) -> bool:
    """Whether the template of the pod's replica names no other scheduler; true for one that the job no longer has."""
    group = next((group for group in job.groups if group.type.lower() == pod.type), None)
    return group is None or _takes(scheduler, job, group.template_of(pod.index))


def _takes(scheduler: GangScheduler, job: DLJob, template: PodTemplate) -> bool:
    """Whether the pods of a template belong to the group of their job."""
    if scheduler.is_native:
        return native_gang.is_member(template)
    return scheduler.takes(_scheduler_of(job, template, scheduler))


def build(
    job: DLJob,
    scheduler: GangScheduler,
    observed: Observed,
    waiting: Collection[str],
    completed: Mapping[str, Collection[int]],
) -> Manifest | None:
    """The PodGroup, ``None`` where no template leaves the pods of a replica to this scheduler.

    The types in ``waiting`` start later; ``completed`` has the indexes of the replicas that have succeeded, by
    lower-case type.
    """
    if not _takes_any(scheduler, job):
        return None
    policy = job.run_policy.scheduling
    members = _members(job, scheduler, observed, completed)
    count = _least(job, members, waiting)
    # Those that start later need room too: else two jobs start their first stages, and neither's last one fits.
    reserved = len(members) if policy.min_available is None else count
    # what the user gives is for all replicas
    given = {} if any(completed.values()) else policy.min_resources
    resources = given or _requests(template for _, template in islice(members, reserved))
    spec: dict[str, Any] = {"minMember": count}
    if resources:
        spec["minResources"] = dict(resources)
    if scheduler.is_volcano:
        if queue := policy.queue or policy.annotations.get(ANNOTATION_QUEUE):
            spec["queue"] = queue
        if policy.priority_class:
            spec["priorityClassName"] = policy.priority_class
    elif policy.schedule_timeout_seconds is not None:
        spec["scheduleTimeoutSeconds"] = policy.schedule_timeout_seconds
    return _marked(job, scheduler, spec)


def build_native(
    job: DLJob,
    observed: Observed,
    waiting: Collection[str],
    completed: Mapping[str, Collection[int]],
    traits: native_gang.Traits,
) -> Manifest | None:
    """Likewise the PodGroup of Kubernetes itself, whose pods have these ``traits``."""
    scheduler = GangScheduler(NATIVE)
    if not _takes_any(scheduler, job):
        return None
    count = _least(job, _members(job, scheduler, observed, completed), waiting)
    annotations = {c.ANNOTATION_GANG: str(traits)}
    return _marked(job, scheduler, native_gang.group_spec(count, traits), annotations)


def _takes_any(scheduler: GangScheduler, job: DLJob) -> bool:
    """Whether the pods of a replica belong to the group."""
    templates = (template for group in job.groups for template in group.templates if template.indexes)
    return any(_takes(scheduler, job, template) for template in templates)


def _marked(
    job: DLJob, scheduler: GangScheduler, spec: Manifest, annotations: Mapping[str, str] | None = None
) -> Manifest:
    manifest = {
        "apiVersion": OWNED_KINDS[scheduler.owned_kind].api_version,
        "kind": POD_GROUP,
        "metadata": {
            "name": job.name,
            "annotations": {
                **job.run_policy.scheduling.annotations,
                **(annotations or {}),
                c.ANNOTATION_LIFETIME: c.LIFETIME_ACTIVE,
            },
        },
        "spec": spec,
    }
    return owned_objects.marked(job, manifest, manifest)


def _least(job: DLJob, members: Collection[tuple[str, PodTemplate]], waiting: Collection[str]) -> int:
    """How many of the ``members`` start together, without those of the types in ``waiting``.

    More than the job has replicas means, as in training-operator, that it waits until somebody lowers the number.
    """
    min_available, replicas = job.run_policy.scheduling.min_available, _replicas(job)
    ready = sum(type_ not in waiting for type_, _ in members)
    if min_available is None:
        return max(1, ready)
    return min_available if min_available > replicas else max(1, min(min_available, ready))


def _replicas(job: DLJob) -> int:
    return sum(len(template.indexes) for group in job.groups for template in group.templates)


def join(scheduler: GangScheduler, job: DLJob, template: PodTemplate, metadata: Manifest, spec: dict[str, Any]) -> None:
    """Make a pod of ``job`` with this ``metadata``, which has labels and annotations, a member of the job's group.

    Not one whose template names another scheduler: the gang scheduler would not see when it starts.
    """
    if scheduler.is_native:
        spec.setdefault(SCHEDULING_GROUP, {"podGroupName": job.name})
        return
    spec["schedulerName"] = _scheduler_of(job, template, scheduler)
    if not scheduler.takes(spec["schedulerName"]):
        return
    if scheduler.is_volcano:
        metadata["annotations"][ANNOTATION_POD_GROUP] = job.name
        metadata["annotations"][ANNOTATION_TASK] = metadata["labels"][c.LABEL_REPLICA_TYPE]
    else:
        metadata["labels"][LABEL_POD_GROUP] = job.name


def _scheduler_of(job: DLJob, template: PodTemplate, scheduler: GangScheduler) -> str:
    """The schedulerName of the pods of a template."""
    return str(template.template["spec"].get("schedulerName") or job.run_policy.scheduler_name or scheduler.name)


def _members(
    job: DLJob,
    scheduler: GangScheduler,
    observed: Observed,
    completed: Mapping[str, Collection[int]],
) -> list[tuple[str, PodTemplate]]:
    """The type and the template of each replica that counts, or will once its type starts."""
    name = scheduler.pod_group(job.name)
    others = {
        (pod.type, pod.index)
        for pod in observed.pods
        if not pod.deleting and (name not in pod.pod_groups or pod.phase in ("Succeeded", "Failed"))
    }
    return [
        (group.type, template)
        for group in job.groups
        for template in group.templates
        if _takes(scheduler, job, template)
        for index in template.indexes
        if index not in completed.get(group.type.lower(), ()) and (group.type.lower(), index) not in others
    ]


def _requests(templates: Iterable[PodTemplate]) -> dict[str, str]:
    """What one pod of each of ``templates`` requests, summed up, as quantities."""
    total: Quantities = {}
    by_path: dict[str, Quantities] = {}
    for one in templates:
        if one.path not in by_path:
            by_path[one.path] = _pod_requests(one.template["spec"])
        total = summed(total, by_path[one.path])
    return {name: f"{amount.normalize():f}" for name, amount in sorted(total.items())}


def _pod_requests(spec: Manifest) -> Quantities:
    """What the scheduler reserves for a pod: its containers and sidecars, or an init container that requests more."""
    total: Quantities = {}
    most: Quantities = {}
    for container in spec["containers"]:
        total = summed(total, _container_requests(container))
    for container in spec.get("initContainers") or ():
        requests = _container_requests(container)
        if container.get("restartPolicy") == c.RESTART_ALWAYS:
            total = summed(total, requests)
        else:
            most = largest(most, requests)
    return largest(total, most)


def _container_requests(container: Manifest) -> Quantities:
    """The requests of a container; for resources without one its limits, as the API server sets them."""
    # the pod gets the resource under the name that the nodes have, which the plan does not know
    named = {name: amount for name, amount in requested(container).items() if name != ALPHA_GPU and amount is not None}
    return {name: quantities.amount(amount) for name, amount in named.items()}
