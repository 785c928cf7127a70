"""Builds :class:`Observed` from API objects."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import (
    Owner,
    controller_uid,
    is_owned_by,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import batch_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe import device_health, restart_rules
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import digits
from ansible_collections.dljob.operator.plugins.module_utils.shared.batch_job_pods import FAILED_BEFORE, labelled_job
from ansible_collections.dljob.operator.plugins.module_utils.shared.gang_scheduler import pod_groups_of
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import FIRST_CONTAINER
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import (
    ContainerEnd,
    ContainerFailure,
    Observed,
    OwnedObject,
    PodState,
    Termination,
)

Resource = Mapping[str, Any]

ENDED = ("Succeeded", "Failed")
"""The phases of a pod that has ended."""
_DENIED = ("ReplicaFailure", "True")
"""The condition of a Deployment whose pods a quota or an admission rule denies."""


def build_observed_state(
    owner: Owner,
    container: str,
    pods: Iterable[Resource],
    services: Iterable[Resource],
    others: Mapping[str, Iterable[Resource]] | None = None,
) -> Observed:
    """The state of those objects that the job ``owner`` controls; ``container`` is the framework's container name.

    ``others`` are objects by kind: the items of the API's lists have no kind. The pods of a batch Job that runs a
    replica belong to that Job. Of a pod that is marked with FAILED_BEFORE only the failure counts.
    """
    owned = {
        kind: [one for one in found if is_owned_by(one, owner)]
        for kind, found in {**(others or {}), "Service": services}.items()
    }
    batch_jobs = [one for one in owned.get(batch_job.KIND, ()) if batch_job.runs_replica(one)]
    present = {_uid_of(one) for one in owned.get(batch_job.KIND, ())}  # those that a hook returned too
    states: dict[str, list[PodState]] = {uid: [] for uid in (owner.uid, *map(_uid_of, batch_jobs))}
    gone: dict[str, list[PodState]] = {}
    remaining: list[PodState] = []
    for pod in pods:  # each is read once, and only its state is kept: a job may have thousands
        uid = controller_uid(pod, owner.namespace)
        if FAILED_BEFORE in pod:
            gone.setdefault(uid or "", []).append(_pod(pod, container))
        elif uid in states:
            states[uid].append(_pod(pod, container))
        elif uid is not None and uid not in present and labelled_job(pod) == owner.uid:
            found = _pod(pod, container)
            if found.phase not in ENDED:
                remaining.append(dataclasses.replace(found, terminating=found.terminating or found.created))
    replicas = (
        batch_job.state(
            one, _pod({"metadata": one["metadata"]}, container), states[_uid_of(one)], gone.get(_uid_of(one), ())
        )
        for one in batch_jobs
    )
    return Observed(
        pods=(*states[owner.uid], *replicas),
        services={one["metadata"]["name"]: _uid_of(one) for one in owned["Service"]},
        owned_objects={
            (kind, one["metadata"]["name"]): _owned_object(one) for kind, found in owned.items() for one in found
        },
        remaining=tuple(remaining),
    )


def _uid_of(resource: Resource) -> str:
    return str(resource["metadata"].get("uid", ""))


def _owned_object(resource: Resource) -> OwnedObject:
    metadata, status = resource["metadata"], resource.get("status") or {}
    annotations = metadata.get("annotations") or {}
    conditions = status.get("conditions") or ()
    denied = (x.get("message") or "" for x in conditions if (x.get("type"), x.get("status")) == _DENIED)
    return OwnedObject(
        uid=metadata.get("uid", ""),
        hash=annotations.get(c.ANNOTATION_SPEC_HASH, ""),
        lifetime=annotations.get(c.ANNOTATION_LIFETIME, ""),
        services=annotations.get(c.ANNOTATION_SERVICES, ""),
        denied=next(denied, ""),
        deleting=metadata.get("deletionTimestamp") or "",
        gang=annotations.get(c.ANNOTATION_GANG, ""),
    )


def _pod(pod: Resource, container: str) -> PodState:
    metadata, spec, status = pod.get("metadata") or {}, pod.get("spec") or {}, pod.get("status") or {}
    container = container_name(spec, container)
    statuses = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    conditions = tuple((x.get("type", ""), x.get("status", "")) for x in status.get("conditions") or ())
    disrupted = ("DisruptionTarget", "True") in conditions
    phase = status.get("phase") or "Pending"
    waiting, pending_since = _waiting(statuses, status), _pending_since(metadata, status, phase)
    main = _main_container(statuses, container, phase)
    state = main.get("state") or {}
    own: Resource = next((one for one in spec.get("containers") or () if one.get("name") == container), {})
    ended = restart_rules.last_end(own, main, status)
    device = device_health.unhealthy(statuses, container)
    by_rule = phase not in ENDED and restart_rules.applies(own, ended, status)
    return PodState(
        **_of_metadata(metadata, spec),
        phase=phase,
        node=spec.get("nodeName") or "",
        restarts=_restarts(statuses, container),
        restart_policy=own.get("restartPolicy") or spec.get("restartPolicy") or c.RESTART_ALWAYS,
        container=main.get("name") or container,
        ended=_termination(ended) if ended else None,
        ended_elsewhere=bool(ended) and main.get("name") != container,
        terminated="terminated" in state,
        is_ready=("Ready", "True") in conditions,
        restarted_by_rule=by_rule,
        is_active=_is_active(status, phase) or by_rule,
        reason=status.get("reason") or "",
        message=status.get("message") or "",
        waiting=waiting,
        has_run=any(_has_run(one) for one in status.get("containerStatuses") or ()),
        pending_since=pending_since,
        unstarted_since=""
        if waiting or not spec.get("nodeName")
        else _unstarted_since(statuses, status, pending_since),
        disrupted=disrupted,
        conditions=conditions,
        failed_containers=tuple(_failures(statuses)),
        evicted_by_taint=disrupted and _is_evicted_by_taint(status),
        last_failure=_on(device, _last_failure(metadata, main, disrupted)) if ended else None,
        crash_loop=_on(device, _crash_loop(metadata, spec, status, main, own)),
        device=device,
    )


def _of_metadata(metadata: Resource, spec: Resource) -> dict[str, Any]:
    """The fields of a pod's state that its ``metadata`` has. Gang schedulers count it by its ``spec`` too."""
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    deleting = metadata.get("deletionTimestamp") or ""
    return {
        "name": metadata.get("name", ""),
        "uid": metadata.get("uid", ""),
        "type": labels.get(c.LABEL_REPLICA_TYPE, ""),
        "index": digits.number(labels.get(c.LABEL_REPLICA_INDEX)) or 0,
        "attempt": digits.number(labels.get(c.LABEL_ATTEMPT)) or 0,
        "created": metadata.get("creationTimestamp") or "",
        "deleting": deleting,
        "terminating": deleting,
        "spec_hash": annotations.get(c.ANNOTATION_SPEC_HASH, ""),
        "shared": annotations.get(c.ANNOTATION_SHARED, ""),
        "services": annotations.get(c.ANNOTATION_SERVICES, ""),
        "grace_period": metadata.get("deletionGracePeriodSeconds") or 0.0,
        "finalizers": tuple(metadata.get("finalizers") or ()),
        "group": labels.get(c.LABEL_REPLICA_GROUP, ""),
        "pod_groups": pod_groups_of(labels, annotations, spec),
    }


def _last_failure(metadata: Resource, main: Resource, disrupted: bool) -> ContainerEnd | None:
    """See :attr:`PodState.last_failure`.

    The present end of a container of a pod that is being deleted may be its answer to the deletion: a container that
    had failed was running again. The last status of such a pod has no end before that any more.
    """
    before = restart_rules.real((main.get("lastState") or {}).get("terminated")) or {}
    now = restart_rules.real((main.get("state") or {}).get("terminated")) or {}
    if now.get("exitCode") and not disrupted and not metadata.get("deletionTimestamp"):
        return _end(metadata, main, now)
    return _end(metadata, main, before) if before.get("exitCode") else None


def _crash_loop(
    metadata: Resource, spec: Resource, status: Resource, main: Resource, own: Resource
) -> ContainerEnd | None:
    """See :attr:`PodState.crash_loop`."""
    if status.get("phase") in ENDED or metadata.get("deletionTimestamp"):
        return None
    policy = spec.get("restartPolicy") or c.RESTART_ALWAYS
    for one in (main, *(status.get("initContainerStatuses") or ())):
        state = one.get("state") or {}
        ended = (one.get("lastState") or {}).get("terminated")
        if (state.get("waiting") or {}).get("reason") != "CrashLoopBackOff":
            ended = state.get("terminated")
            declared = own if one is main else {}
            restarts = (declared.get("restartPolicy") or policy) != c.RESTART_NEVER
            if not (restarts or restart_rules.applies(declared, ended, status)):
                continue
        if ended and ended.get("exitCode"):
            return _end(metadata, one, ended)
    return None


def _end(metadata: Resource, container: Resource, ended: Resource) -> ContainerEnd:
    return ContainerEnd(metadata.get("name", ""), container.get("name") or "", _termination(ended))


def _on(device: str, end: ContainerEnd | None) -> ContainerEnd | None:
    """``end`` with the clause about unhealthy devices."""
    return dataclasses.replace(end, device=device) if end and device else end


def container_name(spec: Resource, container: str) -> str:
    """The name of the framework's container in a pod: ``container``, or that of the first one."""
    if container != FIRST_CONTAINER:
        return container
    return next((one.get("name", "") for one in spec.get("containers") or ()), "")


def has_condition(status: Resource, type_: str) -> bool:
    """Whether a pod with that ``status`` has the condition."""
    return any(x.get("type") == type_ and x.get("status") == "True" for x in status.get("conditions") or ())


def _is_evicted_by_taint(status: Resource) -> bool:
    return any(
        (one.get("type"), one.get("reason")) == ("DisruptionTarget", "DeletionByTaintManager")
        for one in status["conditions"]
    )


def _main_container(statuses: list[Resource], container: str, phase: str) -> Resource:
    """The container whose state describes the pod: the framework's, or the one that kept it from starting.

    While the pod has not failed, only the framework's container counts: the kubelet may restart an init container, and
    the state of a sidecar does not matter.
    """
    own = next((s for s in statuses if s.get("name") == container), {})
    ran = {"terminated", "running"} & set(own.get("state") or {}) or own.get("restartCount")
    if ran or phase != "Failed":
        return own
    failed = (s for s in statuses if ((s.get("state") or {}).get("terminated") or {}).get("exitCode"))
    return next(failed, own)


def _restarts(statuses: list[Resource], container: str) -> int:
    """How often the kubelet restarted the framework's container. Restarts of a sidecar are no failures of the job."""
    return next((s.get("restartCount") or 0 for s in statuses if s.get("name") == container), 0)


def _failures(statuses: list[Resource]) -> Iterator[ContainerFailure]:
    for one in statuses:
        ended = (one.get("state") or {}).get("terminated") or {}
        if ended.get("exitCode"):
            yield ContainerFailure(one.get("name") or "", int(ended["exitCode"]), ended.get("reason") or "")


def _is_active(status: Resource, phase: str) -> bool:
    if phase in ENDED:
        return False
    statuses = status.get("containerStatuses") or ()
    return not statuses or any("terminated" not in (s.get("state") or {}) for s in statuses)


def _has_run(container: Resource) -> bool:
    state, last = container.get("state") or {}, container.get("lastState") or {}
    return bool({"running", "terminated"} & set(state) or last.get("terminated") or container.get("restartCount"))


def _termination(state: Resource) -> Termination:
    return Termination(
        code=int(state.get("exitCode") or 0),
        reason=state.get("reason") or "",
        message=(state.get("message") or "").strip(),
        finished_at=state.get("finishedAt") or "",
        started_at=state.get("startedAt") or "",
    )


def _waiting(statuses: list[Resource], status: Resource) -> str:
    """Why the pod does not start: the reason and message of the kubelet or of the scheduler."""
    for container in statuses:
        waiting = (container.get("state") or {}).get("waiting") or {}
        reason = waiting.get("reason") or ""
        if reason and reason not in ("ContainerCreating", "PodInitializing", "CrashLoopBackOff", restart_rules.ALL):
            return f"{reason}: {waiting['message']}" if waiting.get("message") else str(reason)
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return f"{condition.get('reason') or 'Unschedulable'}: {condition.get('message') or ''}".rstrip(": ")
    return ""


def _pending_since(metadata: Resource, status: Resource, phase: str) -> str:
    """See :attr:`PodState.pending_since`. Init containers may take hours, to copy data, which is no wait."""
    if phase != "Pending" or restart_rules.has_restarted_all(status):
        return ""
    states = [one.get("state") or {} for one in status.get("initContainerStatuses") or ()]
    # a sidecar among the init containers runs on while the others wait
    if any("running" in state for state in states) and not has_condition(status, "Initialized"):
        return ""
    ended = [s["terminated"] for s in states if "terminated" in s and not s["terminated"].get("exitCode")]
    return max((metadata.get("creationTimestamp") or "", *(one.get("finishedAt") or "" for one in ended)))


def _unstarted_since(statuses: list[Resource], status: Resource, pending_since: str) -> str:
    """See :attr:`PodState.unstarted_since`, of a pod that has a node."""
    states = [one.get("state") or {} for one in statuses]
    fails = any((state.get("waiting") or {}).get("reason") == "CrashLoopBackOff" for state in states)
    fails = fails or any((state.get("terminated") or {}).get("exitCode") for state in states)
    if not pending_since or fails or any(_has_run(one) for one in status.get("containerStatuses") or ()):
        return ""
    scheduled = (
        one.get("lastTransitionTime") or ""
        for one in status.get("conditions") or ()
        if one.get("type") == "PodScheduled"
    )
    return max(pending_since, *scheduled)
