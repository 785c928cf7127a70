"""Who reports: a pod of a job, from the cached objects of both. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.names import LABEL_REPLICA_INDEX, LABEL_REPLICA_TYPE
from ansible_collections.dljob.operator.plugins.module_utils.shared.progress import (
    ANNOTATION_REPORTS,
    OF_JOB,
    OF_RANK,
    TRAINER_STATUS,
    UPDATED,
)

from dljob_operator.engine.statuses import as_mapping, is_stalled, status_of, time_of

_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True)
class PodIdentity:
    """The pod of a token."""

    namespace: str
    uid: str


@dataclass(frozen=True)
class Reporter:
    """The pod that reports. ``kind`` is the name of the job's target, ``replica`` is as ``worker-0``; ``is_first`` is
    whether its report is the job's."""

    job: str
    namespace: str
    kind: str
    name: str
    pod: str
    replica: str
    node: str
    is_first: bool
    written: datetime | None = None
    """When the job's status got its last report."""
    is_stalled: bool = False
    """Whether the job's status says that it stalls."""
    address: str = ""
    """From where the report came."""


def reporter_of(pod: Mapping[str, Any], kind: str, job: Mapping[str, Any]) -> Reporter | None:
    """The reporter that ``pod`` is, None for one that the operator has not made to report, or that has ended.

    Of a job that has ended nothing counts any more either.
    """
    metadata = pod["metadata"]
    role = as_mapping(metadata.get("annotations")).get(ANNOTATION_REPORTS)
    if role not in (OF_JOB, OF_RANK) or has_ended(job):
        return None
    if as_mapping(pod.get("status")).get("phase") in _ENDED:
        return None
    labels, of = as_mapping(metadata.get("labels")), job["metadata"]
    return Reporter(
        job=str(of["uid"]),
        namespace=str(of.get("namespace") or ""),
        kind=kind,
        name=str(of.get("name") or ""),
        pod=str(metadata.get("name") or ""),
        replica=f"{labels.get(LABEL_REPLICA_TYPE, '')}-{labels.get(LABEL_REPLICA_INDEX, '')}",
        node=str(as_mapping(pod.get("spec")).get("nodeName") or ""),
        is_first=role == OF_JOB,
        written=written_at(job),
        is_stalled=is_stalled(status_of(job)),
    )


def has_ended(job: Mapping[str, Any]) -> bool:
    """Whether a job has succeeded or failed, so that it has its last status but for its cleanup."""
    return bool(status_of(job).get("completionTime"))


def written_at(job: Mapping[str, Any]) -> datetime | None:
    """When the status of a job got its last report."""
    return time_of(as_mapping(status_of(job).get(TRAINER_STATUS)).get(UPDATED))
