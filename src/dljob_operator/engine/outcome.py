"""What a run came to for each job in it: pure functions over what the role reported.

A task result may carry `dljob`, a mapping with

    requeue_after   seconds after which to run again in any case, or null; for all jobs of the run that do not say so
                    for themselves
    jobs            a list with, for each job of the run: uid, ok, message, requeue_after, and optionally
                    wrote: [[uid, resourceVersion or null], ...], the objects that the run created, changed
                    or (null) deleted for it. The next run of the job then starts after the watch has shown
                    them, and their events are no reason for another run. And optionally warnings: a list of what
                    whoever runs the operator is to know, for its log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dljob_operator.engine.resource_versions import Written
from dljob_operator.runner.messages import RunOutcome, RunResult


@dataclass(frozen=True)
class JobOutcome:
    """One job's part of a run. `told` is False where the run ended without saying how this job fared."""

    ok: bool
    message: str = ""
    requeue_after: float | None = None
    wrote: frozenset[Written] = field(default_factory=frozenset)
    told: bool = True
    warnings: tuple[str, ...] = ()


def outcomes(result: RunResult, uids: Sequence[str], *, shared: bool = False) -> dict[str, JobOutcome]:
    """Return the outcome of each of the jobs `uids` that `result`'s run was for.

    Of a run that goes on, of those that it tells of. `shared` says that there were others, of which it told before.
    """
    reported = _by_uid(result.reports)
    if result.is_partial:
        return {uid: reported[uid] for uid in uids if uid in reported}
    common = _soonest(report.get("requeue_after") for report in result.reports if not _speaks_of(report, uids))
    if len(uids) == 1 and not shared:
        return {uids[0]: _alone(result, reported.get(uids[0]), common)}
    return {uid: _shared(result, reported.get(uid), common) for uid in uids}


def _alone(result: RunResult, job: JobOutcome | None, common: float | None) -> JobOutcome:
    job = job or JobOutcome(True)
    if not result.ok:
        return JobOutcome(False, job.message or result.message, wrote=job.wrote, warnings=job.warnings)
    return _with_common(job, common)


def _shared(result: RunResult, job: JobOutcome | None, common: float | None) -> JobOutcome:
    if job is not None:
        return _with_common(job, common)
    if result.ending is RunOutcome.COMPLETED and result.ok:
        return JobOutcome(False, "the role took several jobs but reported nothing of this one", told=False)
    return JobOutcome(False, result.message, told=False)


def _with_common(job: JobOutcome, common: float | None) -> JobOutcome:
    return replace(job, requeue_after=_soonest((job.requeue_after, common)))


def _speaks_of(report: Mapping[str, Any], uids: Sequence[str]) -> bool:
    return any(job["uid"] in uids for job in report.get("jobs") or ())


def _by_uid(reports: Sequence[Mapping[str, Any]]) -> dict[str, JobOutcome]:
    """Return the jobs' own reports; where several tasks report one job, it is ok if each says so."""
    found: dict[str, JobOutcome] = {}
    for report in reports:
        for job in report.get("jobs") or ():
            told = JobOutcome(
                bool(job.get("ok", True)),
                str(job.get("message") or ""),
                _soonest([job.get("requeue_after", report.get("requeue_after"))]),
                frozenset((str(uid), version and str(version)) for uid, version in job.get("wrote") or ()),
                warnings=tuple(map(str, job.get("warnings") or ())),
            )
            before = found.get(job["uid"])
            found[job["uid"]] = told if before is None else _both(before, told)
    return found


def _both(first: JobOutcome, second: JobOutcome) -> JobOutcome:
    messages = dict.fromkeys(filter(None, (first.message, second.message)))
    return JobOutcome(
        first.ok and second.ok,
        "\n".join(messages),
        _soonest((first.requeue_after, second.requeue_after)),
        first.wrote | second.wrote,
        warnings=tuple(dict.fromkeys((*first.warnings, *second.warnings))),
    )


def _soonest(delays: Any) -> float | None:
    return min((float(delay) for delay in delays if delay is not None), default=None)
