"""``runPolicy.stallPolicy``: what follows once the programs of a running job report no progress any more.

A report of any replica counts, whatever it says: a false alarm may cost a training, and a percentage may stay the same
for hours. Nothing counts while not all replicas run, nor a time in which reports may have been lost, as while no
operator took them. The status of such a job has the field ``allRunning``, while all its replicas run::

    {"since": RFC 3339, "restarts": restarts in place of its pods, "newest": when the newest pod was created}

The condition Stalled is then True until a report, or until all replicas run again. A replica that starts again begins
the time anew, and ``startSeconds`` then applies until the next report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_count, as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import conditions
from ansible_collections.dljob.operator.plugins.module_utils.shared.progress import TRAINER_STATUS, UPDATED
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.failure import Failure
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed
from ansible_collections.dljob.operator.plugins.module_utils.values.reports import LastReport, Reports
from ansible_collections.dljob.operator.plugins.module_utils.values.stall_policy import (
    ACTION_FAIL_JOB,
    ACTION_RESTART_JOB,
    StallPolicy,
)

FIELD = "allRunning"
_PATH = "spec.runPolicy.stallPolicy"
IGNORED = f"{_PATH} has no effect: this operator takes no reports of progress, see its setting --progress"


@dataclass(frozen=True, slots=True)
class Stalls:
    """Whether a job stalls."""

    running: Mapping[str, Any]
    """:data:`FIELD` of the status."""
    message: str = ""
    """That the job stalls, as a sentence; "" where it does not."""
    wait: float | None = None
    """Seconds until it would; ``None`` where time changes nothing."""
    action: str = ""
    """What a job that stalls needs."""
    is_known: bool = True
    """False while not all replicas run: then the condition stays as it is."""

    @property
    def restarting(self) -> str:
        """Why all replicas restart; "" where they do not."""
        return self.message if self.action == ACTION_RESTART_JOB else ""

    @property
    def failure(self) -> Failure | None:
        """The failure of a job whose policy is to fail."""
        return Failure(c.REASON_STALLED, self.message) if self.message and self.action == ACTION_FAIL_JOB else None


NONE = Stalls({})
UNKNOWN = Stalls({}, is_known=False)


def find(job: DLJob, current: Observed, status: Mapping[str, Any], now: datetime) -> Stalls:
    """Whether a job stalls all of whose replicas run in the ``current`` pods. ``status`` is empty for a new spec."""
    policy = job.run_policy.stall_policy
    if policy is None:
        return NONE
    running, is_new = _running(current, as_mapping(status.get(FIELD)), now)
    if current.reports is None:
        return Stalls(running)
    began = clock.parse(running["since"]) or now
    heard = _last_report(current.reports, status, now)
    if not is_new and (message := _goes_on(job, heard)):
        return Stalls(running, message, action=policy.action)
    has_reported = heard is not None and heard >= began
    limit = policy.no_progress_seconds if has_reported else policy.start_seconds
    if limit is None:
        return Stalls(running)
    since = max(heard if heard is not None and has_reported else began, _ago(now, current.reports.listening))
    left = limit - max(0.0, (now - since).total_seconds())
    if left > 0:
        return Stalls(running, wait=left)
    return Stalls(running, _explain(policy, current.reports, now, has_reported=has_reported), action=policy.action)


def _running(current: Observed, known: Mapping[str, Any], now: datetime) -> tuple[dict[str, Any], bool]:
    """The field, and whether it begins anew."""
    restarts = sum(pod.restarts + pod.restarts_by_job for pod in current.pods)
    before = str(known.get("newest") or "")
    newest = max((pod.created for pod in current.pods), default="")
    goes_on = newest <= before and restarts <= as_count(known.get("restarts")) and clock.parse(known.get("since"))
    since = str(known["since"]) if goes_on else clock.stamp(now)
    return {"since": since, "restarts": restarts, "newest": max(newest, before)}, not goes_on


def _last_report(reports: Reports, status: Mapping[str, Any], now: datetime) -> datetime | None:
    """By the operator's clock. An operator that has begun meanwhile knows it from the status."""
    written = clock.parse(as_mapping(status.get(TRAINER_STATUS)).get(UPDATED))
    own = None if reports.age is None else _ago(now, reports.age)
    return max((time for time in (own, written and min(written, now)) if time), default=None)


def _ago(now: datetime, seconds: float) -> datetime:
    return now - timedelta(seconds=seconds)


def _goes_on(job: DLJob, heard: datetime | None) -> str:
    """The message of a stall that the status has and after which there was no report; "" without one."""
    known = conditions.get_condition(conditions.read_conditions(job.status), c.CONDITION_STALLED)
    if known is None or known.get("status") != "True":
        return ""
    noticed = clock.parse(known.get("lastTransitionTime"))
    if noticed is None or (heard is not None and heard > noticed):
        return ""
    return str(known.get("message") or "")


def _explain(policy: StallPolicy, reports: Reports, now: datetime, *, has_reported: bool) -> str:
    if not has_reported:
        return (
            f"no program has reported progress within {policy.start_seconds} s since all replicas run, "
            f"as {_PATH}.startSeconds allows"
        )
    text = (
        f"no program has reported progress for more than {policy.no_progress_seconds} s, "
        f"as {_PATH}.noProgressSeconds allows"
    )
    said = "; ".join(_said(one, now) for one in reports.oldest)
    more = reports.replicas - len(reports.oldest)
    return text + (f"; last: {said}" if said else "") + (f"; and {more} more" if more > 0 else "")


def _said(last: LastReport, now: datetime) -> str:
    return f"{last.replica} at {clock.stamp(_ago(now, last.age))}" + (f" ({last.text})" if last.text else "")
