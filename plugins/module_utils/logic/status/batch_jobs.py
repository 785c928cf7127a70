"""What the batch Jobs that run replicas have shown so far, stored in the status, because it must outlive their pods.

The Job controller starts the pods of a batch Job again, and under ``restartPolicy: OnFailure`` it deletes the last one
when it has failed too often. The field has an entry for each such replica: ``{"launcher-0": {"uid": of the batch Job,
"restarts": how often it started the replica again, "before": how often earlier batch Jobs did, "failure": its last}}``.

``retries`` of the status has these restarts too. Those of the operator, which the attempts and the limits of the job
follow, are the rest.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.log_tail import IN_STATUS, log_tail
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_count, as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.retries import key, retries_of
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import (
    ContainerEnd,
    Observed,
    PodState,
    Termination,
)

FIELD = "batchJobs"
POD_LAG = 10.0
"""Seconds for which a job waits for the failure of a pod that its batch Job has reported already."""
POD_REQUEUE = 1.0
Entry = Mapping[str, Any]


def read(status: Mapping[str, Any]) -> dict[str, Entry]:
    """The field of a status by replica. What is malformed counts as nothing."""
    return {str(name): as_mapping(entry) for name, entry in as_mapping(status.get(FIELD)).items()}


def remembered(job: DLJob, observed: Observed) -> Observed:
    """``observed`` with what the status of ``job`` knows of the batch Jobs, where their pods show less."""
    stored = read(job.status)
    if not stored or not any(pod.batch_job for pod in observed.pods):
        return observed
    return dataclasses.replace(observed, pods=tuple(_remembered(pod, stored) for pod in observed.pods))


def _remembered(pod: PodState, stored: Mapping[str, Entry]) -> PodState:
    entry = stored.get(key(pod.type, pod.index)) or {}
    if pod.batch_job is None or entry.get("uid") != pod.batch_job.uid:
        return pod
    failures = [one for one in (_read_failure(entry.get("failure")), pod.last_failure) if one]
    return dataclasses.replace(
        pod,
        # of two in one second the pod's own has the whole message
        last_failure=max(reversed(failures), key=lambda one: one.ended.finished_at, default=None),
        restarts_by_job=max(pod.restarts_by_job, as_count(entry.get("restarts"))),
    )


def is_ahead(observed: Observed, now: datetime) -> bool:
    """Whether a batch Job has just failed, and the next event of its pod will have the failure."""
    ages = (clock.seconds_since(pod.unseen_end, now) for pod in observed.pods if pod.unseen_end)
    return any(age is not None and abs(age) < POD_LAG for age in ages)


def write(stored: Mapping[str, Entry], pods: Iterable[PodState], *, final: bool = False) -> dict[str, Entry]:
    """The field after ``pods`` were seen; ``stored`` is that before. A ``final`` status has the failure elsewhere."""
    entries = dict(stored)
    for pod in pods:
        if pod.batch_job is None or pod.deleting:
            continue
        name = key(pod.type, pod.index)
        known = entries.get(name) or {}
        is_new = known.get("uid") != pod.batch_job.uid
        before = as_count(known.get("before")) + (as_count(known.get("restarts")) if is_new else 0)
        entries[name] = {
            "uid": pod.batch_job.uid,
            "restarts": pod.restarts_by_job,
            "before": before,
            "failure": _write_failure(pod.last_failure) if pod.last_failure else None,
        }
    written = {name: {k: v for k, v in entry.items() if v} for name, entry in entries.items()}
    if final:
        written = {name: {k: v for k, v in entry.items() if k != "failure"} for name, entry in written.items()}
    return {name: entry for name, entry in written.items() if set(entry) != {"uid"}}


def restarts(entries: Mapping[str, Entry]) -> dict[str, int]:
    """How often batch Jobs have started each replica again."""
    counts = {name: as_count(entry.get("restarts")) + as_count(entry.get("before")) for name, entry in entries.items()}
    return {name: count for name, count in counts.items() if count}


def with_restarts(retries: Mapping[str, int], entries: Mapping[str, Entry]) -> dict[str, int]:
    """The counts of the operator with those of the batch Jobs, as the status has them."""
    made = restarts(entries)
    return {name: retries.get(name, 0) + made.get(name, 0) for name in dict.fromkeys((*retries, *made))}


def counted(job: DLJob) -> dict[str, int]:
    """The restarts that the operator itself has counted: what the limits of the job are about."""
    made = restarts(read(job.status))
    counts = {name: count - made.get(name, 0) for name, count in retries_of(job).items()}
    return {name: count for name, count in counts.items() if count > 0 or name not in made}


def new_restarts(stored: Mapping[str, Entry], pods: Iterable[PodState]) -> list[ContainerEnd]:
    """The failures after which batch Jobs have started replicas again since ``stored``."""
    found = []
    for pod in pods:
        known = stored.get(key(pod.type, pod.index)) or {}
        count = as_count(known.get("restarts")) if pod.batch_job and known.get("uid") == pod.batch_job.uid else 0
        if pod.restarts_by_job > count and pod.last_failure:
            found.append(pod.last_failure)
    return found


def _write_failure(end: ContainerEnd) -> Mapping[str, Any]:
    return {
        "pod": end.pod,
        "container": end.container,
        "exitCode": end.ended.code,
        "reason": end.ended.reason,
        "message": log_tail(end.ended.message, IN_STATUS),
        "finishedAt": end.ended.finished_at,
    }


def _read_failure(value: object) -> ContainerEnd | None:
    known = as_mapping(value)
    code = as_count(known.get("exitCode"))
    if not code:
        return None
    texts = {name: str(known.get(name) or "") for name in ("pod", "container", "reason", "message", "finishedAt")}
    ended = Termination(code, texts["reason"], texts["message"], texts["finishedAt"])
    return ContainerEnd(texts["pod"], texts["container"], ended)
