"""What must hold once a round has settled. Pure: from the history, from lists of the API server and from metrics.

It shares no code with the operator, and reads the JSON of the API server alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from devtools.lab.chaos.history import History, JobRecord, has_condition, is_final, job_uid_of, state_of

_JOBS_METRIC = re.compile(r"^dljob_jobs\{([^}]*)\} ([0-9.e+]+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
Finding = tuple[str, str]
"""A rule, and what violates it."""


def title(manifest: Mapping[str, Any]) -> str:
    metadata = manifest["metadata"]
    return f"{manifest['kind']} ({manifest['apiVersion']}) {metadata['name']} {metadata['uid']}"


def lost_jobs(manifests: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """Jobs that have not ended, although nothing has disturbed them for the whole time of settling."""
    for manifest in manifests:
        state = state_of(manifest)
        if not is_final(state):
            yield "a job does not end", f"{title(manifest)}: {state or 'no state'}"


def vanished_jobs(manifests: Sequence[Mapping[str, Any]], history: History) -> Iterator[Finding]:
    """Jobs that are not listed, although neither the run nor their own time to live has deleted them."""
    listed = {manifest["metadata"]["uid"] for manifest in manifests}
    for uid in sorted((history.created | history.jobs.keys()) - history.deleted - listed):
        job = history.jobs.get(uid)
        if job is None:
            yield "a job vanished", f"{uid}, which no watch has shown"
        elif not (job.ended and run_policy(job.manifest).get("ttlSecondsAfterFinished") is not None):
            yield "a job vanished", f"{title(job.manifest)}: {job.ended or 'before its end'}"


def run_policy(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = manifest["spec"]
    return (spec.get("runPolicy") or {}) if isinstance(spec, dict) else {}


def wrong_outcomes(manifests: Sequence[Mapping[str, Any]], expected: Mapping[str, str]) -> Iterator[Finding]:
    """Jobs that ended otherwise than their pods imply; ``expected`` has the state by name."""
    for manifest in manifests:
        state, wanted = state_of(manifest), expected[manifest["metadata"]["name"]]
        if is_final(state) and state != wanted:
            status = manifest.get("status") or {}
            yield "a wrong outcome", f"{title(manifest)}: {state}, not {wanted}: {status.get('reason', '')}"


def wrong_attempts(history: History) -> Iterator[Finding]:
    """Failures that were counted twice or not at all.

    A pod of attempt n exists only after n failures, each of an attempt of its own, and the status counts these. A count
    may lack a failure whose pod was deleted, or whose job ended, before it was counted; it never has one more. A change
    of the spec starts the counts again, so edited jobs are left out. A batch Job counts the failures of its own pods:
    for the operator its replica fails once, when the batch Job does.

    A job that restarts as a whole begins an attempt also for a pod that was taken away, which is no failure. So each of
    its attempts must be in the status, and as failures only where nothing was taken away.
    """
    for job in history.jobs.values():
        if job.uid in history.edited or not job.exists:
            continue
        retries = _of_the_operator(job.status)
        if "job" in retries or _restarts_as_a_whole(job):
            yield from _wrong_whole(history, job, retries)
        else:
            yield from _wrong_counts(history, job, retries)


def _of_the_operator(status: Mapping[str, Any]) -> Mapping[str, int]:
    """``retries`` without the restarts that batch Jobs made."""
    made = {
        rank: one.get("restarts", 0) + one.get("before", 0) for rank, one in (status.get("batchJobs") or {}).items()
    }
    return {rank: count - made.get(rank, 0) for rank, count in (status.get("retries") or {}).items()}


def _wrong_whole(history: History, job: JobRecord, retries: Mapping[str, int]) -> Iterator[Finding]:
    failed = {attempt for _, attempt in _failures(history, job.uid)}
    attempts = {pod.attempt for pod in history.pods_of(job.uid)}
    counted, recorded = int(retries.get("job", 0)), int(job.status.get("attempt") or 0)
    seen = f"{title(job.manifest)}: {retries}, attempt {recorded}, attempts {sorted(attempts)}, failed {sorted(failed)}"
    if counted > len(failed):
        yield "a failure counted twice", seen
    if _restarts_as_a_whole(job):
        least = recorded if history.is_disturbed(job.uid) else min(recorded, counted)
        if max(attempts, default=0) > least:
            yield "an attempt that was not counted", seen


def _wrong_counts(history: History, job: JobRecord, retries: Mapping[str, int]) -> Iterator[Finding]:
    failures = _failures(history, job.uid)
    ranks: dict[str, set[int]] = {}
    for pod in history.pods_of(job.uid):
        ranks.setdefault(pod.rank, set()).add(pod.attempt)
    for rank, attempts in ranks.items():
        failed = {attempt for failed_rank, attempt in failures if failed_rank == rank}
        count = int(retries.get(rank, 0))
        seen = f"{title(job.manifest)} {rank}: counted {count}, attempts {sorted(attempts)}, failed {sorted(failed)}"
        if count > len(failed):
            yield "a failure counted twice", seen
        if max(attempts) > count:
            yield "an attempt that was not counted", seen


def _failures(history: History, uid: str) -> set[tuple[str, int]]:
    """The replicas of a job that have failed, with the attempt of each failure."""
    pods = {(pod.rank, pod.attempt) for pod in history.pods_of(uid) if pod.failed and not pod.in_batch_job}
    return pods | {(rank, attempt) for job, rank, attempt in history.failed_batch_jobs if job == uid}


def _restarts_as_a_whole(job: JobRecord) -> bool:
    return run_policy(job.manifest).get("restartScope") == "Job"


def wrong_labels(history: History) -> Iterator[Finding]:
    """Pods of the present jobs without the labels of a replica of theirs, by which the other checks know them."""
    for name, owner, labelled in history.labelled.values():
        uid = history.batch_jobs.get(owner, owner)
        job = history.jobs.get(uid)
        if job is not None and job.exists and labelled != uid:
            yield "a pod without its labels", f"{name} of {title(job.manifest)}: {labelled or 'none'}"


def _cleaned(manifests: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], str]]:
    """The ended jobs whose policy is to delete pods, with that policy."""
    for manifest in manifests:
        policy = run_policy(manifest).get("cleanPodPolicy")
        if is_final(state_of(manifest)) and policy in ("Running", "All"):
            yield manifest, policy


def left_running(manifests: Sequence[Mapping[str, Any]], history: History) -> Iterator[Finding]:
    """Pods that nothing has deleted although their job has ended, where its policy is to delete these."""
    for manifest, _ in _cleaned(manifests):
        pods = history.pods_of(manifest["metadata"]["uid"])
        if live := [pod.name for pod in pods if pod.is_live and not pod.deleting]:
            yield "a pod of an ended job runs", f"{title(manifest)}: {live}"


def left_batch_jobs(
    manifests: Sequence[Mapping[str, Any]], batch_jobs: Sequence[Mapping[str, Any]]
) -> Iterator[Finding]:
    """Batch Jobs of ended jobs that should not exist: under All any, under Running those that may create pods."""
    for manifest, policy in _cleaned(manifests):
        own = [one for one in batch_jobs if job_uid_of(one) == manifest["metadata"]["uid"]]
        left = [
            one["metadata"]["name"]
            for one in own
            if not one["metadata"].get("deletionTimestamp")
            and (policy == "All" or not has_condition(one, "Complete", "Failed"))
        ]
        if left:
            yield "a batch Job of an ended job is left", f"{title(manifest)}: {left}"


def orphans(objects: Sequence[Mapping[str, Any]], jobs: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """Objects whose job does not exist, by their controller or by their labels."""
    present = {job["metadata"]["uid"] for job in jobs}
    for one in objects:
        metadata, uid = one["metadata"], job_uid_of(one)
        if uid and uid not in present:
            yield "an orphan", f"{metadata['name']} ({metadata['uid']}) of job {uid}"


def writes_at_rest(writes: Sequence[str]) -> Iterator[Finding]:
    """Requests of an operator that changed something while there was nothing to do; each as a text."""
    for write, count in Counter(writes).most_common(5):
        yield "a write for a job at rest", f"{count} times {write}"


def cached_jobs(metrics: str, namespace: str) -> Counter[tuple[str, str]]:
    """How many jobs an operator's metrics report, by kind and state."""
    found: Counter[tuple[str, str]] = Counter()
    for labels, value in _JOBS_METRIC.findall(metrics):
        named = dict(_LABEL.findall(labels))
        if named.get("namespace") == namespace:
            found[named.get("kind", ""), named.get("state", "")] += int(float(value))
    return found


def wrong_cache(metrics: str, namespace: str, manifests: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """Whether the leader's cache has another number of jobs of some kind and state: its metrics have no more of it."""
    cached = cached_jobs(metrics, namespace)
    there = Counter((f"{manifest['apiVersion']} {manifest['kind']}", state_of(manifest)) for manifest in manifests)
    if cached != there:
        keys = cached.keys() | there.keys()
        differences = {key: (cached[key], there[key]) for key in keys if cached[key] != there[key]}
        yield "a stale cache", f"(cached, present) by kind and state: {differences}"
