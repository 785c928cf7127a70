"""Which failures of replicas are consequences of the loss of another one.

A process that loses a peer ends too, and its exit code says nothing of the cause: torchrun's 1 after 2 to 6 s,
TensorFlow's 1 after 8 s, that of JAX after its heartbeat timeout of 100 s. So the loss of a replica that is to run
again explains the failures of the others for :data:`WINDOW`. They do not count for the limits of the job. They do not
fail it either where a retry may cure the loss: a disruption, a deletion or a retryable exit code. Each replica has one
such failure a loss.

The kubelets' clocks give the times, to the second. A loss from outside (OOMKilled, SIGKILL, SIGTERM, an eviction)
explains also what failed up to :data:`LEAD` before its report: :mod:`.end_order`. The status has the last loss in
the field ``lastLoss``::

    {"replica": "worker-2", "uid": of the pod, "time": RFC 3339, "message": a sentence, "retryable": whether it is,
     "external": whether it came from outside, "lag": seconds from ``time`` to its end, where a consequence ended first,
     "consequences": {"master-0": seconds after ``time`` at which this replica failed},
     "hidden": ["launcher-0"], the replicas that have exited with 0 because of it}

and the restarts that were consequences in ``consequentRestarts``, by replica.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import end_order, failure
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.end_order import LEAD, REPORT_LAG
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.exit_codes import (
    ExitCodeClass,
    classify_exit_code,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_count, as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.retries import key, retries_of
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import clip
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.failure import Failure
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import FAILS_BY_TARGET
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState
from ansible_collections.dljob.operator.plugins.module_utils.values.pod_failure_policy import (
    ACTION_FAIL_JOB,
    ACTION_IGNORE,
)

FIELD = "lastLoss"
COUNTS = "consequentRestarts"
WINDOW = 120
"""Seconds after a loss in which failures of other replicas are its consequences: JAX needs 100 to notice it."""


@dataclass(frozen=True, slots=True)
class Loss:
    """The end, or the deletion, of the pod of a replica that is to run again. ``consequences`` is as in the status."""

    replica: str
    uid: str
    """Of the pod."""
    time: int
    """Seconds since 1970, of its end or of its first consequence."""
    message: str
    retryable: bool
    consequences: Mapping[str, int] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    """The replicas of :mod:`.hidden_losses` that have started again because of it, once each."""
    external: bool = False
    """Whether something other than the job's programs has ended it."""
    lag: int = 0
    """Seconds from ``time`` to its end."""


@dataclass(frozen=True, slots=True)
class Losses:
    """The last loss of a job and what followed from it."""

    last: Loss | None = None
    uids: frozenset[str] = frozenset()
    """The pods whose failure is an excused consequence."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """The restarts of each replica that were consequences, complete."""
    undecided: frozenset[str] = frozenset()
    """The pods of which the next reconcile decides whether their failure is a consequence."""
    wait: float | None = None
    """Seconds until then."""
    new: str = ""
    """The uid of the pod of the last loss, where the status does not have that yet."""
    unexplained: float | None = None
    """Seconds for which the last loss, a program's own failure, may turn out to be the consequence of another one."""

    def forgiven(self, retries: Mapping[str, int], pods: Iterable[PodState]) -> dict[str, int]:
        """How many of the restarts of each replica do not count: those by new pods, ``retries``, and those in place.

        The latter are gone with their pod, so there may be fewer than ``counts`` has.
        """
        if not self.counts:
            return {}
        made = Counter(retries)
        for pod in pods:
            made[key(pod.type, pod.index)] += pod.restarts
        return {name: min(count, made[name]) for name, count in self.counts.items() if made[name]}


NONE = Losses()


@dataclass(frozen=True, slots=True)
class _End:
    """The last end of a pod's container, or the request to delete the pod."""

    time: int
    """Seconds since 1970."""
    replica: str
    pod: PodState
    is_loss: bool
    retryable: bool
    may_follow: bool
    """Whether it may be a consequence: the failure of a program, of a replica that may run again."""
    origin: int
    """As in :mod:`.end_order`."""

    @property
    def is_external(self) -> bool:
        """Whether something other than the job's programs has ended it."""
        return self.origin == end_order.OUTSIDE


def find(job: DLJob, current: Observed, unfinished: Observed, status: Mapping[str, Any], now: datetime) -> Losses:
    """Compare the ends of the pods with the last loss in ``status``, which is empty for a new spec.

    ``current`` has the pods of the current spec and attempt, ``unfinished`` those whose replicas have not succeeded.
    """
    if sum(group.replicas for group in job.groups) < 2:
        return NONE
    known = read(status)
    counts = _counts(job, current) if COUNTS in status else {}
    ends = sorted(_ends(job, unfinished.pods, known, now), key=_order)
    last = _after(job, ends, known)
    if last is None:
        return _undecided(Losses(None, frozenset(), counts), unfinished, ends, now)
    recorded = [end for end in ends if _is_recorded(last, end)]
    fresh = (end.replica for end in recorded if not (known and _is_recorded(known, end)) and _is_counted(job, end.pod))
    excused = (end.pod.uid for end in recorded if last.retryable or end.time < last.time)
    new = "" if known and known.uid == last.uid else last.uid
    found = Losses(last, frozenset(excused), dict(Counter(counts) + Counter(fresh)), new=new)
    return _undecided(found, unfinished, ends, now)


def _undecided(found: Losses, unfinished: Observed, ends: Iterable[_End], now: datetime) -> Losses:
    """``found`` with the failures that would fail the job, while an earlier one of another replica may be unknown."""
    last = found.last
    if last is not None and not last.external:
        cause = next((end.pod for end in ends if _is_cause(last, end)), None)
        found = dataclasses.replace(found, unexplained=_left(cause, unfinished, now) if cause else None)
    waits = {
        end.pod.uid: left
        for end in ends
        # a failure under Never has no excuse, and may not be the cause
        if (end.may_follow or not end.is_external)
        and not end.is_loss
        and end.pod.uid not in found.uids
        and (left := _left(end.pod, unfinished, now))
    }
    if not waits:
        return found
    return dataclasses.replace(found, undecided=frozenset(waits), wait=max(waits.values()))


def _left(failed: PodState, unfinished: Observed, now: datetime) -> float | None:
    """Seconds in which the report of a loss may come that explains the failure of a pod; ``None`` where none can."""
    ended = clock.parse(failed.ended.finished_at) if failed.ended else None
    left = ended.timestamp() + REPORT_LAG - now.timestamp() if ended else 0
    runs = any(pod.is_active and pod.uid != failed.uid for pod in unfinished.pods)
    return left if runs and 0 < left <= REPORT_LAG else None


def without(observed: Observed, uids: Collection[str]) -> Observed:
    """``observed`` without the pods of these uids."""
    if not uids:
        return observed
    return dataclasses.replace(observed, pods=tuple(pod for pod in observed.pods if pod.uid not in uids))


def with_cause(losses: Losses, observed: Observed, found: Failure | None) -> Failure | None:
    """The failure of a job, with the loss of another replica shortly before it: under Never that is no excuse."""
    last = losses.last
    pod = next((pod for pod in observed.pods if found and pod.name == found.pod), None)
    ended = clock.parse(pod.ended.finished_at) if pod and pod.ended else None
    if found is None or pod is None or last is None or ended is None or last.uid == pod.uid:
        return found
    seconds = int(ended.timestamp()) - last.time
    if not -LEAD <= seconds <= WINDOW:
        return found
    when = f"{seconds} s after" if seconds >= 0 else f"{-seconds} s before the report of"
    text = f"{found.message}; this was {when} the loss of {last.replica}: {last.message}"
    return dataclasses.replace(found, message=text)


def _counts(job: DLJob, current: Observed) -> dict[str, int]:
    """The restarts of each replica that were consequences, by the status; those in place are gone with their pod."""
    retries = retries_of(job)
    present = {key(pod.type, pod.index) for pod in current.pods}
    counts = retries_of(job, COUNTS)
    left = {name: n if name in present else min(n, retries.get(name, 0)) for name, n in counts.items()}
    return {name: n for name, n in left.items() if n > 0}


def write(last: Loss | None) -> dict[str, Any]:
    """The field of the status."""
    if last is None:
        return {}
    found: dict[str, Any] = {
        "replica": last.replica,
        "uid": last.uid,
        "time": clock.stamp(_moment(last.time)),
        "message": last.message,
        "retryable": last.retryable,
    }
    if last.consequences:
        found["consequences"] = dict(last.consequences)
    if last.hidden:
        found["hidden"] = list(last.hidden)
    return {**found, **({"external": True} if last.external else {}), **({"lag": last.lag} if last.lag else {})}


def read(status: Mapping[str, Any]) -> Loss | None:
    """The last loss in a status. What is malformed counts as nothing."""
    known = as_mapping(status.get(FIELD))
    moment = clock.parse(known.get("time"))
    replica, uid, message = (known.get(name) for name in ("replica", "uid", "message"))
    if moment is None or not (isinstance(replica, str) and isinstance(uid, str) and isinstance(message, str)):
        return None
    offsets = as_mapping(known.get("consequences"))
    kept = {str(name): n for name, n in offsets.items() if isinstance(n, int) and not isinstance(n, bool)}
    hidden = known.get("hidden")
    again = tuple(name for name in hidden if isinstance(name, str)) if isinstance(hidden, list) else ()
    is_external, lag = known.get("external") is True, min(as_count(known.get("lag")), LEAD)
    retryable = known.get("retryable") is True
    return Loss(replica, uid, int(moment.timestamp()), message, retryable, kept, again, is_external, lag)


def _after(job: DLJob, ends: Iterable[_End], last: Loss | None) -> Loss | None:
    """The last loss after ``ends``, which are in the order of :func:`_order`."""
    for end in ends:
        if last is None:
            last = _loss(job, end, {}) if end.is_loss else None
        elif not (_is_recorded(last, end) or _is_cause(last, end)):
            last = _with(job, end, last)
    return last


def _with(job: DLJob, end: _End, last: Loss) -> Loss:
    """The last loss after a new ``end``."""
    offset = end.time - last.time
    is_other = end.replica != last.replica
    if is_other and end.is_loss and end.is_external and not last.external and 0 <= offset <= LEAD:
        # reported after the failures that it has caused
        loss = _loss(job, end, {**last.consequences, last.replica: 0})
        return dataclasses.replace(loss, time=last.time, lag=offset)
    # each replica follows once; one that has followed the loss before has a negative offset
    follows = end.may_follow and is_other and last.consequences.get(end.replica, -1) < 0
    if follows and 0 <= offset <= WINDOW:
        return dataclasses.replace(last, consequences={**last.consequences, end.replica: offset})
    if follows and last.external and not end.is_external and last.lag - LEAD <= offset < 0:
        moved = {replica: seconds - offset for replica, seconds in last.consequences.items()}
        return dataclasses.replace(last, time=end.time, lag=last.lag - offset, consequences={**moved, end.replica: 0})
    if end.is_loss and is_other and -REPORT_LAG <= offset < 0 and (end.retryable or not last.retryable):
        # reported after the failure that it has caused
        return _loss(job, end, {**_moved(last, -offset), last.replica: -offset})
    if end.is_loss and offset > 0 and not (is_other and offset <= WINDOW and end_order.is_taken(end.pod)):
        # the pods of earlier consequences may still be there
        return _loss(job, end, _moved(last, -offset))
    return last


def _is_cause(last: Loss, end: _End) -> bool:
    """Whether ``end`` is that of the loss itself."""
    return last.uid == end.pod.uid and end.time - last.time == last.lag


def _is_recorded(last: Loss, end: _End) -> bool:
    return end.may_follow and last.consequences.get(end.replica) == end.time - last.time


def _moved(last: Loss, seconds: int) -> dict[str, int]:
    """The consequences of ``last``, for a loss that is ``seconds`` earlier. Only those that are excused matter."""
    if not last.retryable:
        return {}
    return {replica: offset + seconds for replica, offset in last.consequences.items()}


def _loss(job: DLJob, end: _End, before: Mapping[str, int]) -> Loss:
    others = {replica: offset for replica, offset in before.items() if replica != end.replica}
    message = clip(_describe(job, end.pod))
    return Loss(end.replica, end.pod.uid, end.time, message, end.retryable, others, external=end.is_external)


def _describe(job: DLJob, pod: PodState) -> str:
    if pod.deleting and not pod.disrupted:
        return f"pod {pod.display_name} was deleted"
    return failure.disruption(pod).message if pod.deleting else failure.explain(job, pod).message


def _ends(job: DLJob, pods: Iterable[PodState], known: Loss | None, now: datetime) -> Iterator[_End]:
    groups = {group.type.lower(): group for group in job.groups}
    for pod in pods:
        has_error = pod.ended is not None and pod.ended.code != 0
        if pod.batch_job is not None or not (has_error or pod.deleting or pod.phase == "Failed" or pod.ended_early):
            continue
        group = groups[pod.type]
        is_fatal = failure.action_for(job, pod) == ACTION_FAIL_JOB or failure.is_fatal(job, group, pod)
        # the list layouts have no Never of a replica type
        runs_again = job.flavor.fails_by == FAILS_BY_TARGET or group.restart_policy != c.RESTART_NEVER
        may_follow = (runs_again or pod.restarted_by_rule) and has_error and not end_order.is_taken(pod)
        is_loss = bool(pod.deleting) or not is_fatal
        time, replica = _time(pod, known, now), key(pod.type, pod.index)
        retryable = is_loss and _is_retryable(job, pod)
        yield _End(time, replica, pod, is_loss, retryable, may_follow, end_order.origin(pod))


def _is_retryable(job: DLJob, pod: PodState) -> bool:
    if end_order.is_taken(pod) or pod.ended is None or pod.ended.code == 0:
        return True
    return classify_exit_code(pod.ended, job.flavor.exit_codes) is ExitCodeClass.RETRYABLE


def _order(end: _End) -> tuple[float, bool, int, str]:
    """Of two ends in one second, that comes first which no other program has caused."""
    time, origin = end_order.rank(end.time, end.origin)
    return time, not end.is_loss, origin, end.replica


def _time(pod: PodState, known: Loss | None, now: datetime) -> int:
    """When the pod's container ended, or somebody asked for the deletion of the pod, whichever came first."""
    has_ended = pod.ended is not None and (pod.ended.code or pod.ended_early) and (pod.terminated or not pod.deleting)
    ended = clock.parse(pod.ended.finished_at) if pod.ended and has_ended else None
    limit = clock.parse(pod.terminating or pod.deleting) if pod.deleting else None
    asked = limit - timedelta(seconds=pod.grace_period) if limit else None
    found = min((moment for moment in (ended, asked) if moment), default=None)
    if found is None and known is not None and known.uid == pod.uid:
        return known.time + known.lag
    return int((found or now).timestamp())


def _is_counted(job: DLJob, pod: PodState) -> bool:
    """Whether the limits count the failure of ``pod``, were it not a consequence."""
    return job.run_policy.restart_scope != c.RESTART_SCOPE_JOB and failure.action_for(job, pod) != ACTION_IGNORE


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
