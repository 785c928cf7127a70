"""Who reports: a pod of a job, from the cached objects of both. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.names import LABEL_REPLICA_INDEX, LABEL_REPLICA_TYPE
from ansible_collections.dljob.operator.plugins.module_utils.shared.progress import (
    ANNOTATION_REPORTS,
    OF_JOB,
    OF_RANK,
    TRAINER_STATUS,
    UPDATED,
)

_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True)
class PodIdentity:
    """The pod of a token."""

    namespace: str
    uid: str


@dataclass(frozen=True)
class Reporter:
    """The pod that reports. ``replica`` is as ``worker-0``; ``is_first`` is whether its report is the job's."""

    job: str
    namespace: str
    kind: str
    name: str
    pod: str
    replica: str
    node: str
    is_first: bool


def reporter_of(pod: Mapping[str, Any], kind: str, job: Mapping[str, Any]) -> Reporter | None:
    """The reporter that ``pod`` is, None for one that the operator has not made to report, or that has ended.

    Of a job that has ended nothing counts any more either.
    """
    metadata = pod["metadata"]
    role = _map(metadata.get("annotations")).get(ANNOTATION_REPORTS)
    if role not in (OF_JOB, OF_RANK) or has_ended(job):
        return None
    if _map(pod.get("status")).get("phase") in _ENDED:
        return None
    labels, of = _map(metadata.get("labels")), job["metadata"]
    return Reporter(
        job=str(of["uid"]),
        namespace=str(of.get("namespace") or ""),
        kind=kind,
        name=str(of.get("name") or ""),
        pod=str(metadata.get("name") or ""),
        replica=f"{labels.get(LABEL_REPLICA_TYPE, '')}-{labels.get(LABEL_REPLICA_INDEX, '')}",
        node=str(_map(pod.get("spec")).get("nodeName") or ""),
        is_first=role == OF_JOB,
    )


def has_ended(job: Mapping[str, Any]) -> bool:
    """Whether a job has succeeded or failed, so that it has its last status but for its cleanup."""
    return bool(_map(job.get("status")).get("completionTime"))


def written_at(job: Mapping[str, Any]) -> datetime | None:
    """When the status of a job got its last report."""
    text = _map(_map(job.get("status")).get(TRAINER_STATUS)).get(UPDATED)
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
        return moment.astimezone(UTC) if moment else None
    except (ValueError, OverflowError):
        return None


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
