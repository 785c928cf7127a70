"""Compute the outcome of a run for each of its jobs from the reports of the role: pure functions.

A task result may carry `dljob`, a mapping with

    requeue_after   seconds after which to reconcile again in any case, or null; the default for jobs of the run that
                    have no requeue_after of their own
    jobs            a list with, for each job of the run: uid, ok, message, requeue_after, and optionally
                    continues: whether the next run continues the writes of this one, of a job too large for one;
                    postponed: whether the job was not reconciled, because others of the run took too long (not of a job
                    that is alone in its run, nor if another task reconciled it);
                    seconds: how long the reconcile of the job took;
                    wrote: [[uid, resourceVersion or null], ...], the objects that the run created, changed
                    or (null) deleted for it. The next run of the job starts after the cache has observed these
                    writes, and their watch events do not requeue the job. Optionally also warnings: a list of
                    messages for the administrator, which the engine logs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dljob_operator.engine.queue.resource_versions import Written
from dljob_operator.runner.messages import RunEnding, RunResult


@dataclass(frozen=True)
class JobOutcome:
    """The outcome of a run for one job. `reported` is False if the run ended without a report on the job."""

    ok: bool
    message: str = ""
    requeue_after: float | None = None
    wrote: frozenset[Written] = field(default_factory=frozenset)
    reported: bool = True
    continues: bool = False
    postponed: bool = False
    seconds: float = 0.0
    """How long the reconcile took, if the role reports it."""
    warnings: tuple[str, ...] = ()


def outcomes(result: RunResult, uids: Sequence[str], *, shared: bool = False) -> dict[str, JobOutcome]:
    """Return the outcomes of the jobs `uids` of a run.

    A partial result has only the outcomes of the jobs that it reports. `shared` says that the run had further jobs,
    which earlier partial results reported.
    """
    reported = _by_uid(result.reports)
    if result.is_partial:
        return {uid: reported[uid] for uid in uids if uid in reported}
    common = _earliest(report.get("requeue_after") for report in result.reports if not _is_about(report, uids))
    if len(uids) == 1 and not shared:
        return {uids[0]: _single(result, reported.get(uids[0]), common)}
    return {uid: _shared(result, reported.get(uid), common) for uid in uids}


def written(job_outcomes: Iterable[JobOutcome]) -> frozenset[Written]:
    """Return all writes of `job_outcomes`."""
    return frozenset().union(*(outcome.wrote for outcome in job_outcomes))


def _single(result: RunResult, job: JobOutcome | None, common: float | None) -> JobOutcome:
    if job is None:  # a run that was killed has reported nothing
        job = JobOutcome(True, seconds=0.0 if result.ok else result.seconds)
    if not result.ok:
        message = job.message or result.message
        return JobOutcome(False, message, wrote=job.wrote, warnings=job.warnings, seconds=job.seconds)
    return replace(_with_common(job, common), postponed=False)  # there was no other job


def _shared(result: RunResult, job: JobOutcome | None, common: float | None) -> JobOutcome:
    if job is not None:
        return _with_common(job, common)
    if result.ending is RunEnding.COMPLETED and result.ok:
        return JobOutcome(False, "the role ran for several jobs but reported nothing on this one", reported=False)
    return JobOutcome(False, result.message, reported=False)


def _with_common(job: JobOutcome, common: float | None) -> JobOutcome:
    return replace(job, requeue_after=_earliest((job.requeue_after, common)))


def _is_about(report: Mapping[str, Any], uids: Sequence[str]) -> bool:
    return any(job["uid"] in uids for job in report.get("jobs") or ())


def _by_uid(reports: Sequence[Mapping[str, Any]]) -> dict[str, JobOutcome]:
    """Return the reports by job. A job that several tasks report is ok if all of them report ok."""
    found: dict[str, JobOutcome] = {}
    for report in reports:
        for job in report.get("jobs") or ():
            reported = JobOutcome(
                bool(job.get("ok", True)),
                str(job.get("message") or ""),
                _earliest([job.get("requeue_after", report.get("requeue_after"))]),
                frozenset((str(uid), version and str(version)) for uid, version in job.get("wrote") or ()),
                continues=bool(job.get("continues")),
                postponed=bool(job.get("postponed")),
                seconds=float(job.get("seconds") or 0.0),
                warnings=tuple(map(str, job.get("warnings") or ())),
            )
            before = found.get(job["uid"])
            found[job["uid"]] = reported if before is None else _combined(before, reported)
    return found


def _combined(first: JobOutcome, second: JobOutcome) -> JobOutcome:
    messages = dict.fromkeys(filter(None, (first.message, second.message)))
    return JobOutcome(
        first.ok and second.ok,
        "\n".join(messages),
        _earliest((first.requeue_after, second.requeue_after)),
        first.wrote | second.wrote,
        continues=first.continues or second.continues,
        postponed=first.postponed and second.postponed,
        seconds=first.seconds + second.seconds,
        warnings=tuple(dict.fromkeys((*first.warnings, *second.warnings))),
    )


def _earliest(delays: Any) -> float | None:
    return min((float(delay) for delay in delays if delay is not None), default=None)
