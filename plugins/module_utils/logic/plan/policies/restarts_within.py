"""``runPolicy.restartsWithin``: how often the replicas of a job may restart within some time, all together.

``backoffLimit`` counts over the whole life of a job, which is too little for one of weeks. What counts is the same:
failures that a new pod or the kubelet answers, and no consequences of the loss of another replica. The kubelets' clocks
give the times, to the second. The status has them in the field ``recentRestarts``::

    {"replicas": {"worker-0": {"times": [RFC 3339, ...], "pod": uid, "inPlace": restarts of that pod that are in them}},
     "jobRestarted": the time of the last restart of the whole job because of the limit}

It has no restart that is older than the newest by the ``seconds`` of the limit, so at most ``count`` in a job that goes
on. Of several restarts in place since the last reconcile only the last one's time is known. The others count at the
earliest time that they may have had.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import failure
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.losses import Losses
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.replicas import (
    Progress,
    ReplicaActions,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.restart_scope import KEY
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_list, as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.retries import key
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.failure import Failure
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import PodState
from ansible_collections.dljob.operator.plugins.module_utils.values.restarts_within import (
    ACTION_RESTART_JOB,
    RestartsWithin,
)

FIELD = "recentRestarts"


@dataclass(frozen=True, slots=True)
class _Replica:
    """The recent restarts of a replica."""

    times: tuple[datetime, ...] = ()
    pod: str = ""
    """The uid of the pod of which ``in_place`` restarts are in them."""
    in_place: int = 0


@dataclass(frozen=True, slots=True)
class Recent:
    """The recent restarts of a job."""

    replicas: Mapping[str, _Replica] = field(default_factory=dict)
    job_restarted: datetime | None = None

    @property
    def times(self) -> list[datetime]:
        """Of all restarts, in their order."""
        return sorted(time for one in self.replicas.values() for time in one.times)


NONE = Recent()


@dataclass(frozen=True, slots=True)
class Counted:
    """What a reconcile has counted before."""

    retries: Mapping[str, int]
    """By new pods, by replica and for the whole job (:data:`.restart_scope.KEY`)."""
    launched: Mapping[str, Any]
    """By batch Jobs: :mod:`..status.batch_jobs`."""
    started: str | None = None
    """When the job did (RFC 3339)."""


def find(  # noqa: PLR0913
    pods: Sequence[PodState],
    within: RestartsWithin,
    actions: ReplicaActions,
    counted: Counted,
    lost: Losses,
    status: Mapping[str, Any],
    now: datetime,
) -> Recent:
    """The recent restarts after those of ``pods`` and ``actions``. ``status`` is empty for a new spec."""
    known = _read(status.get(FIELD))
    replicas = dict(known.replicas)
    for name, pod in _newest(pods).items():
        is_excused = pod.uid in lost.uids
        replicas[name] = _with_restarts_in_place(replicas.get(name, _Replica()), pod, counted, is_excused, now)
    ends = {key(pod.type, pod.index): _end(pod, now) for pod in actions.restarted}
    excused = {key(pod.type, pod.index) for pod in actions.restarted if pod.uid in lost.uids}
    for name, count in actions.retries.items():
        new = count - counted.retries.get(name, 0)
        if new > 0 and name not in excused:
            end = ends.get(name) or min(ends.values(), default=now)
            before = replicas.get(name, _Replica())
            replicas[name] = dataclasses.replace(before, times=(*before.times, *[end] * new))
    return _pruned(Recent(replicas, known.job_restarted), within)


def exceeds(recent: Recent, within: RestartsWithin) -> bool:
    """Whether there are more restarts within the time than the limit allows."""
    times, span = recent.times, timedelta(seconds=within.seconds)
    return any(last - first < span for first, last in zip(times, times[within.count :], strict=False))


def restarts_job(recent: Recent, within: RestartsWithin) -> bool:
    """Whether all replicas restart because the limit is exceeded, and not the job fails."""
    if within.action != ACTION_RESTART_JOB or not exceeds(recent, within):
        return False
    last = recent.job_restarted
    return last is None or recent.times[-1] - last >= timedelta(seconds=within.seconds)


def restarted(recent: Recent) -> Recent:
    """After the restart of all replicas."""
    return Recent(job_restarted=recent.times[-1])


def all_replicas(actions: ReplicaActions, progress: Progress) -> ReplicaActions:
    """What follows in place of ``actions`` where all replicas restart. As by a rule, the failure counts for the job."""
    counts = {**progress.retries, KEY: progress.retries.get(KEY, 0) + 1}
    return ReplicaActions((), (), counts, actions.restarted, 0.0, begins=progress.attempt + 1, ignored=progress.ignored)


def exceeded(job: DLJob, recent: Recent, pods: Iterable[PodState], lost: Losses) -> Failure | None:
    """The failure of a job with more restarts within the time than the field allows."""
    within = job.run_policy.restarts_within
    if within is None or not exceeds(recent, within) or restarts_job(recent, within):
        return None
    return explain(within, recent, pods, lost)


def explain(within: RestartsWithin, recent: Recent, pods: Iterable[PodState], lost: Losses) -> Failure:
    """The restarts that are more than the limit allows, and the last failure."""
    again = " again after all had restarted" if recent.job_restarted else ""
    message = (
        f"the job's replicas ended {len(recent.times)} times with an error in less than {within.seconds} s{again}, "
        f"spec.runPolicy.restartsWithin allows {within.count} restarts"
    )
    last = _last_failed(pods, lost)
    if last is None or last.last_failure is None:
        return Failure(c.REASON_RESTARTS_WITHIN, message)
    cause = failure.describe_end(last.last_failure)
    message = f"{message}; last: {cause.message}"
    if not failure.may_be_culprit(last):
        return Failure(c.REASON_RESTARTS_WITHIN, message)
    return dataclasses.replace(cause, reason=c.REASON_RESTARTS_WITHIN, message=message)


def _last_failed(pods: Iterable[PodState], lost: Losses) -> PodState | None:
    """Of those whose failure is no consequence and which nobody deletes."""
    failed = (pod for pod in pods if pod.last_failure and pod.uid not in lost.uids and not pod.deleting)
    return max(failed, key=lambda pod: pod.last_failure.ended.finished_at if pod.last_failure else "", default=None)


def write(recent: Recent) -> dict[str, Any]:
    """The field of the status."""
    replicas = {name: _written(one) for name, one in sorted(recent.replicas.items())}
    fields = {"replicas": replicas, "jobRestarted": recent.job_restarted and clock.stamp(recent.job_restarted)}
    return {name: value for name, value in fields.items() if value}


def _written(replica: _Replica) -> dict[str, Any]:
    in_place = {"pod": replica.pod, "inPlace": replica.in_place} if replica.in_place else {}
    return {"times": [clock.stamp(time) for time in replica.times], **in_place}


def _read(value: object) -> Recent:
    """The field of a status. What is malformed counts as nothing."""
    known = as_mapping(value)
    found = {str(name): _replica(as_mapping(one)) for name, one in as_mapping(known.get("replicas")).items()}
    return Recent({name: one for name, one in found.items() if one.times}, clock.parse(known.get("jobRestarted")))


def _replica(known: Mapping[str, Any]) -> _Replica:
    times = (clock.parse(time) for time in as_list(known.get("times")))
    in_place = known.get("inPlace")
    is_count = isinstance(in_place, int) and not isinstance(in_place, bool) and in_place > 0
    return _Replica(tuple(time for time in times if time), str(known.get("pod") or ""), in_place if is_count else 0)


def _newest(pods: Iterable[PodState]) -> dict[str, PodState]:
    """The newest pod of each replica."""
    found: dict[str, PodState] = {}
    for pod in sorted(pods, key=lambda pod: (not pod.deleting, pod.attempt)):
        found[key(pod.type, pod.index)] = pod
    return found


def _with_restarts_in_place(known: _Replica, pod: PodState, counted: Counted, excused: bool, now: datetime) -> _Replica:
    """``known`` with what the kubelet, or a batch Job, has started again since."""
    before = known.in_place if known.pod == pod.uid else 0
    made, uid = pod.restarts, pod.uid
    if pod.batch_job:
        uid, made = pod.batch_job.uid, pod.restarts_by_job
        entry = as_mapping(counted.launched.get(key(pod.type, pod.index)))
        before = int(entry.get("restarts") or 0) if entry.get("uid") == uid else 0
    new = made - before
    if new <= 0:
        return known
    end = _end(pod, now)
    # the pod of a batch Job may be younger than the restarts
    first = clock.parse(counted.started if pod.batch_job else pod.created)
    earliest = min(known.times[-1] if known.times and (pod.batch_job or known.pod == uid) else first or end, end)
    times = [*[earliest] * (new - 1), *([] if excused else [end])]
    return _Replica((*known.times, *times), "" if pod.batch_job else uid, 0 if pod.batch_job else made)


def _end(pod: PodState, now: datetime) -> datetime:
    """When the failure was that the restart follows."""
    ended = pod.last_failure.ended if pod.last_failure else pod.ended
    found = clock.parse(ended.finished_at) if ended else None
    return min(found or now, now)


def _pruned(recent: Recent, within: RestartsWithin) -> Recent:
    """Without the restarts that are older than the newest by the time of the limit."""
    times = recent.times
    if not times:
        return dataclasses.replace(recent, replicas={})
    oldest = times[-1] - timedelta(seconds=within.seconds)
    left = {
        name: dataclasses.replace(one, times=tuple(time for time in one.times if time > oldest))
        for name, one in recent.replicas.items()
    }
    return dataclasses.replace(recent, replicas={name: one for name, one in left.items() if one.times})
