"""What the pods of a job hold and do, read from their objects."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import Owner, controller_uid
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.observed_state import (
    ENDED,
    container_name,
    has_condition,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock, digits
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.pod_requests import pod_requests
from ansible_collections.dljob.operator.plugins.module_utils.shared.batch_job_pods import FAILED_BEFORE
from ansible_collections.dljob.operator.plugins.module_utils.shared.deleted_pods import DELETED
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.usage import (
    DELETION,
    DISRUPTION,
    FAILURE,
    PodUse,
    PodUses,
    Span,
)

Resource = Mapping[str, Any]

_KILLED = (137, 143)
"""Exit codes of a program that a signal has ended, as the kubelet sends it to one that is deleted."""


def read(
    owner: Owner,
    batch_jobs: Collection[str],
    container: str,
    pods: Iterable[Resource],
    gone: Iterable[Resource] | None = None,
) -> PodUses:
    """The uses of the job ``owner``, whose replicas run in its pods and in those of its ``batch_jobs`` (UIDs).

    ``gone`` are those of :mod:`..shared.deleted_pods`, ``None`` without an engine. The engine has seen whose they were.
    """
    first, *others = gone or [{}]
    known = {pod["metadata"].get("uid") for pod in others}
    controllers = {owner.uid, *batch_jobs}
    mine = (
        pod
        for pod in pods
        if FAILED_BEFORE not in pod
        and pod["metadata"].get("uid") not in known
        and controller_uid(pod, owner.namespace) in controllers
    )
    return PodUses(
        tuple(_uses(mine, container)),
        tuple(_uses(others, container)),
        str(first.get("watch") or ""),
        clock.seconds(first.get("since")),
    )


def _uses(pods: Iterable[Resource], container: str) -> Iterator[PodUse]:
    return (use for pod in pods if (use := _use(pod, container)) is not None)


def _use(pod: Resource, container: str) -> PodUse | None:
    """``None`` of a pod that no node has ever had."""
    metadata, spec, status = as_mapping(pod.get("metadata")), as_mapping(pod.get("spec")), as_mapping(pod.get("status"))
    start = _bound(spec, status)
    if start is None:
        return None
    gone = as_mapping(pod.get(DELETED))
    end = _released(status, start)
    if end is None and gone:
        end = clock.seconds(gone.get("at"))
    held = Span(start, None if end is None else max(start, end))
    main, own = _main(spec, status, container)
    labels = metadata.get("labels") or {}
    return PodUse(
        (labels.get(c.LABEL_REPLICA_TYPE, ""), digits.number(labels.get(c.LABEL_REPLICA_INDEX)) or 0),
        pod_requests(spec),
        held,
        tuple(_worked(main, held)),
        None if _ends_by_deletion(metadata, main) else _succeeded(main, own, spec, status, held),
        _cause(metadata, status, main),
        gone.get("number") or 0,
    )


def _bound(spec: Resource, status: Resource) -> int | None:
    """When the pod was bound to its node; its startTime for one that no scheduler has placed."""
    for condition in status.get("conditions") or ():
        if (condition.get("type"), condition.get("status")) == ("PodScheduled", "True"):
            return clock.seconds(condition.get("lastTransitionTime"))
    return clock.seconds(status.get("startTime")) if spec.get("nodeName") else None


def _released(status: Resource, start: int) -> int | None:
    """When the last container of a pod that has ended did so. Of one without any, as after an eviction, the last
    change of a condition tells."""
    if status.get("phase") not in ENDED:
        return None
    statuses = (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ()))
    ends = [clock.seconds(_ended(one).get("finishedAt")) for one in statuses]
    if not any(ends):
        ends = [clock.seconds(one.get("lastTransitionTime")) for one in status.get("conditions") or ()]
    return max((end for end in ends if end is not None), default=start)


def _ended(container: Resource, state: str = "state") -> Resource:
    return (container.get(state) or {}).get("terminated") or {}


def _main(spec: Resource, status: Resource, container: str) -> tuple[Resource, Resource]:
    """The status and the declaration of the framework's container; empty where there is none."""
    declared, container = spec.get("containers") or (), container_name(spec, container)
    return (
        next((one for one in status.get("containerStatuses") or () if one.get("name") == container), {}),
        next((one for one in declared if one.get("name") == container), {}),
    )


def _worked(main: Resource, held: Span) -> Iterator[Span]:
    """The spans of the last two runs of a container; a third one is in no status."""
    for ended in (_ended(main, "lastState"), _ended(main)):
        start, end = clock.seconds(ended.get("startedAt")), clock.seconds(ended.get("finishedAt"))
        if start is not None and end is not None:
            yield Span(start, max(start, end))
    running = (main.get("state") or {}).get("running")
    start = None if running is None else clock.seconds(running.get("startedAt"))
    if start is not None:
        yield Span(start, None if held.end is None else max(start, held.end))


def _succeeded(main: Resource, own: Resource, spec: Resource, status: Resource, held: Span) -> int | None:
    ended = _ended(main)
    policy = own.get("restartPolicy") or spec.get("restartPolicy") or c.RESTART_ALWAYS
    if ended.get("exitCode") == 0 and (policy != c.RESTART_ALWAYS or status.get("phase") == "Succeeded"):
        return clock.seconds(ended.get("finishedAt"))
    return held.end if status.get("phase") == "Succeeded" else None


def _cause(metadata: Resource, status: Resource, main: Resource) -> str:
    if has_condition(status, "DisruptionTarget"):
        return DISRUPTION
    return DELETION if _ends_by_deletion(metadata, main) else FAILURE


def _ends_by_deletion(metadata: Resource, main: Resource) -> bool:
    """Whether the deletion of a pod has ended its program, which may answer the signal by an exit code of its own.

    The last state of a pod that is gone has a grace period of 0, and its own end as the time of its deletion: then the
    exit code tells, and a replica that has succeeded before is among those that the status knows as completed.
    """
    ended = _ended(main) or _ended(main, "lastState")
    deadline, end = clock.seconds(metadata.get("deletionTimestamp")), clock.seconds(ended.get("finishedAt"))
    if deadline is None:
        return False
    grace = metadata.get("deletionGracePeriodSeconds") or 0
    if end is None or ended.get("exitCode") in _KILLED:
        return True
    return bool(end >= deadline - grace) if grace else not ended.get("exitCode")
