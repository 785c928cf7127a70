"""``runPolicy.restartsWithin``: how often the replicas of a job may restart within some time, all together.

``backoffLimit`` counts over the whole life of a job, which is too little for one of weeks. What counts is the same, and
the restarts by batch Jobs. The status has the field ``recentRestarts``::

    {"restarts": those counted so far, "consequences": those of them that follow from the loss of another replica,
     "times": [RFC 3339, ...], "jobRestarted": the time of the last restart of the whole job because of the limit}

The kubelets' clocks give the times, to the second. None is older than the newest by the ``seconds`` of the limit, and
there are at most ``count`` in a job that goes on. A restart whose time is unknown, because of several since the last
reconcile, counts at the earliest time that it may have had. Restarts of before the field was set do not count.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import failure
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.losses import Losses
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.replicas import ReplicaActions
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_count, as_list, as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.failure import Failure
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import PodState
from ansible_collections.dljob.operator.plugins.module_utils.values.pod_failure_policy import ACTION_RESTART_JOB
from ansible_collections.dljob.operator.plugins.module_utils.values.restarts_within import RestartsWithin

FIELD = "recentRestarts"


@dataclass(frozen=True, slots=True)
class Recent:
    """The recent restarts of a job."""

    times: tuple[datetime, ...] = ()
    """In their order."""
    restarts: int | None = None
    """How many have been counted so far; ``None`` where nothing is known of them."""
    consequences: int = 0
    job_restarted: datetime | None = None
    is_exceeded: bool = False
    """Whether one that this reconcile has counted is more than the limit allows."""


NONE = Recent()


def find(  # noqa: PLR0913
    pods: Sequence[PodState],
    within: RestartsWithin,
    actions: ReplicaActions,
    lost: Losses,
    status: Mapping[str, Any],
    started: str | None,
    now: datetime,
) -> Recent:
    """The recent restarts after those of ``pods`` and ``actions``. ``status`` is empty for a new spec.

    ``started`` is the start of the job, RFC 3339.
    """
    known = _read(status.get(FIELD))
    restarts = sum(actions.retries.values()) + sum(map(_restarts, pods))
    consequences = sum(lost.forgiven(actions.retries, pods).values())
    before = known.restarts
    if before is None:
        # pods that terminate are of before a suspension
        is_new = "specHash" not in status
        before = sum(_restarts(pod) for pod in pods if pod.deleting) if is_new else restarts
    new = max(0, restarts - before) - max(0, consequences - known.consequences)
    times = known.times
    if new > 0:
        earliest = times[-1] if times else clock.parse(started) or now
        times = (*times, *_times(min(new, within.count + 1), _ends(pods, actions, lost, now), times, earliest))
    elif new < 0:
        times = times[:new]  # the loss of which they are consequences was reported later
    times = _within(sorted(times), within)
    return Recent(times, restarts, consequences, known.job_restarted, new > 0 and len(times) > within.count)


def _restarts_job(recent: Recent, within: RestartsWithin) -> bool:
    """Whether all replicas restart because the limit is exceeded, and not the job fails."""
    return within.action == ACTION_RESTART_JOB and recent.is_exceeded and not _is_again(recent, within)


def escalation(within: RestartsWithin, recent: Recent, pods: Iterable[PodState], lost: Losses) -> Failure | None:
    """Why all replicas restart because the limit is exceeded, ``None`` where they do not."""
    return _explain(within, recent, pods, lost) if _restarts_job(recent, within) else None


def restarted(recent: Recent) -> Recent:
    """After the restart of all replicas."""
    return Recent(job_restarted=recent.times[-1])


def exceeded(job: DLJob, recent: Recent, pods: Iterable[PodState], lost: Losses, stall: str = "") -> Failure | None:
    """The failure of a job with more restarts within the time than the field allows.

    ``stall`` says that the job stalls and would restart because of it.
    """
    within = job.run_policy.restarts_within
    if within is None or not recent.is_exceeded or _restarts_job(recent, within):
        return None
    if stall:
        allowed = f"spec.runPolicy.restartsWithin allows {within.count} restarts in {within.seconds} s"
        return Failure(c.REASON_RESTARTS_WITHIN, f"{stall}, and {allowed}, of which none is left")
    return _explain(within, recent, pods, lost)


def _explain(within: RestartsWithin, recent: Recent, pods: Iterable[PodState], lost: Losses) -> Failure:
    """The restarts that are more than the limit allows, and the last failure."""
    again = ", and all had restarted before" if _is_again(recent, within) else ""
    message = (
        f"the job's replicas ended {len(recent.times)} times with an error in less than {within.seconds} s{again}: "
        f"spec.runPolicy.restartsWithin allows {within.count} restarts"
    )
    last = max(
        _failed(pods, lost),
        key=lambda pod: pod.last_failure.ended.finished_at if pod.last_failure else "",
        default=None,
    )
    if last is None or last.last_failure is None:
        return Failure(c.REASON_RESTARTS_WITHIN, message)
    cause = failure.describe_end(last.last_failure)
    message = f"{message}; last: {cause.message}"
    if not failure.may_be_culprit(last):
        return Failure(c.REASON_RESTARTS_WITHIN, message)
    return dataclasses.replace(cause, reason=c.REASON_RESTARTS_WITHIN, message=message)


def write(recent: Recent) -> dict[str, Any]:
    """The field of the status."""
    fields = {
        "consequences": recent.consequences,
        "times": [clock.stamp(time) for time in recent.times],
        "jobRestarted": recent.job_restarted and clock.stamp(recent.job_restarted),
    }
    counted = {} if recent.restarts is None else {"restarts": recent.restarts}
    return {**counted, **{name: value for name, value in fields.items() if value}}


def _read(value: object) -> Recent:
    """The field of a status. What is malformed counts as nothing."""
    known = as_mapping(value)
    times = (clock.parse(time) for time in as_list(known.get("times")))
    restarts = known.get("restarts")
    return Recent(
        tuple(sorted(time for time in times if time)),
        as_count(restarts) if isinstance(restarts, int) else None,
        as_count(known.get("consequences")),
        clock.parse(known.get("jobRestarted")),
    )


def _is_again(recent: Recent, within: RestartsWithin) -> bool:
    """Whether the limit has restarted all replicas already within its time."""
    last = recent.job_restarted
    return last is not None and bool(recent.times) and recent.times[-1] - last < timedelta(seconds=within.seconds)


def _restarts(pod: PodState) -> int:
    """How often the kubelet, or a batch Job, has started it again."""
    return pod.restarts_by_job if pod.batch_job else pod.restarts


def _failed(pods: Iterable[PodState], lost: Losses) -> list[PodState]:
    """Those whose failure is no consequence and which are not being deleted."""
    return [pod for pod in pods if pod.last_failure and pod.uid not in lost.uids and not pod.deleting]


def _ends(pods: Iterable[PodState], actions: ReplicaActions, lost: Losses, now: datetime) -> list[datetime]:
    """When the pods have failed that have been restarted, the last first."""
    ends = {
        pod.uid: clock.parse(pod.last_failure.ended.finished_at)
        for pod in _failed(pods, lost)
        # the end of a container that waits is that before its next restart
        if pod.last_failure and not (pod.terminated or pod.crash_loop)
    }
    for pod in actions.restarted:
        if pod.uid not in lost.uids:
            ends[pod.uid] = (clock.parse(pod.ended.finished_at) if pod.ended else None) or now
    if actions.begins and not actions.restarted:
        return [now]  # no pod has ended: the job stalls
    return sorted((min(end, now) for end in ends.values() if end), reverse=True)


def _times(count: int, ends: Iterable[datetime], known: Iterable[datetime], earliest: datetime) -> list[datetime]:
    """Of so many new restarts: the last ``ends`` that are not ``known``, and ``earliest`` for the others."""
    left = Counter(known)
    found = []
    for end in ends:
        if left[end]:
            left[end] -= 1
        else:
            found.append(end)
    found = found[:count]
    return [*[earliest] * (count - len(found)), *found]


def _within(times: Sequence[datetime], within: RestartsWithin) -> tuple[datetime, ...]:
    """Without those that are older than the newest by the time of the limit."""
    span = timedelta(seconds=within.seconds)
    return tuple(time for time in times if times[-1] - time < span)[-within.count - 1 :]
