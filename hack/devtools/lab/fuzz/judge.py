"""Judges what the operator did with a job. Pure."""

from __future__ import annotations

import enum
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from devtools.lab.fuzz.mutations import places

REFUSED_REASONS = ("FailedValidation", "RefusedByKubernetes")
OURS = (None, "", "kubeflow.org/training-operator", "dljob.operator/dljob-operator")
DEEPEST = 100
"""Levels of nesting that the operator reads."""
_FIXED = (
    "metadata", "spec", "name", "labels", "annotations", "replicas", "template", "containers", "quota", "size", "bytes",
)  # fmt: skip
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]{2,}")


class Outcome(enum.Enum):
    """What became of an accepted job."""

    STATUS = "status"
    REFUSED = "refused by the operator"
    IGNORED = "ignored"
    GONE = "deleted"
    PENDING = "pending"


@dataclass(frozen=True)
class Judgement:
    """``text`` is the operator's reason, "" if there is none."""

    outcome: Outcome
    text: str = ""


def judge(job: Mapping[str, Any] | None, warnings: Sequence[str] = ()) -> Judgement:
    """Judge a job as it is now, None for one that is gone. ``warnings`` are the messages of its Warning Events."""
    if job is None:
        return Judgement(Outcome.GONE)
    status = job.get("status")
    if isinstance(status, Mapping) and status:
        failure = status.get("failure")
        reason = str(status.get("reason") or "")
        if isinstance(failure, Mapping) and failure.get("reason") in REFUSED_REASONS:
            return Judgement(Outcome.REFUSED, reason or str(failure.get("message") or ""))
        return Judgement(Outcome.STATUS, reason)
    if ignored(job):
        return Judgement(Outcome.IGNORED)
    if warnings:
        return Judgement(Outcome.REFUSED, warnings[-1])
    return Judgement(Outcome.PENDING)


def ignored(job: Mapping[str, Any]) -> bool:
    """Whether the operator does not take the job: another controller's, one in deletion, one nested too deeply."""
    spec = job.get("spec")
    policy = spec.get("runPolicy") if isinstance(spec, Mapping) else None
    manager = policy.get("managedBy") if isinstance(policy, Mapping) else None
    leaving = bool(job.get("metadata", {}).get("deletionTimestamp"))
    return leaving or manager not in OURS or levels(job) > DEEPEST


def levels(value: Any) -> int:
    """Levels of mappings and lists. It does not recurse."""
    depth, level = 0, [value]
    while level := [one for one in level if isinstance(one, (dict, list))]:
        depth += 1
        level = [child for one in level for child in (one.values() if isinstance(one, dict) else one)]
    return depth


def names_a_field(reason: str, fields: Collection[str]) -> bool:
    """Whether the text contains one of the ``fields``, or one that every job has, as a word."""
    words = set(_WORD.findall(reason))
    return bool(words.intersection(fields) or words.intersection(_FIXED))


def fields_of(manifest: Any) -> set[str]:
    """All keys in a manifest."""
    return {str(key) for holder, key in places({"": manifest}) if isinstance(holder, dict)}
