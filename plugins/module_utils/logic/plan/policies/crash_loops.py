"""The containers that fail and are started again without the operator: by the kubelet in place, or by a batch Job.

The pod, or the replica, counts as running meanwhile. The reason in the status says what happens.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.failure import describe_end
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import clip
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import ContainerEnd, Observed, PodState


def first(observed: Observed, status: Mapping[str, Any], consequences: Collection[str] = ()) -> str:
    """A sentence about the first container that waits for its restart, "" where there is none.

    The reason of ``status`` stays while it is true, so that many such containers do not change it in turn. The pods
    with the uids ``consequences`` come last: another one is the cause.
    """
    before, found = str(status.get("reason") or ""), ""
    pods = sorted(observed.pods, key=lambda pod: pod.uid in consequences) if consequences else observed.pods
    for end in _failures(pods):
        text = f"back-off after a failure: {describe_end(end).message}"
        if clip(text) == before:
            return text
        found = found or text
    return found


def _failures(pods: Iterable[PodState]) -> Iterator[ContainerEnd]:
    for pod in pods:
        end = _failure(pod)
        if end and not pod.deleting:
            yield end


def _failure(pod: PodState) -> ContainerEnd | None:
    if pod.crash_loop:
        return pod.crash_loop
    # between two pods of a batch Job
    return pod.last_failure if pod.batch_job and pod.lacks_pod_since else None
