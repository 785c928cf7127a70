"""What the history keeps of a job, read from its object, in which a tenant may have written anything. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.deleted_pods import account_in
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import is_accelerator

from dljob_operator import log_links
from dljob_operator.engine.cache.predicates import is_leaving
from dljob_operator.engine.statuses import as_mapping, conditions_of, end_of, status_of, time_of, true_conditions

DELETED = "Deleted"
"""The result of a job that was deleted before its end."""
LONGEST_MESSAGE = 1024
LONGEST_NAME = 253
"""Characters of names, users and queues, as Kubernetes limits names."""
LONG_RUNNING = 3600.0
"""Seconds since its creation after which a job that still runs has a row for each day."""
_PHASES = ("queued", "starting", "running", "restarting", "suspended")
_USERS = ("dljob.operator/user", "arena.kubeflow.org/console-user", "app.kubernetes.io/created-by")
"""Labels or annotations with the user, as `kubectl dljob usage` finds it."""
_QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
_RUNNING = "Running"
_DISRUPTION = "Disruption"
_SKEW = timedelta(minutes=5)
"""How far the clocks of the API server and of this process may differ."""
_MOST = 1e24
"""A number above is none that a job can have."""
_MOST_INTEGER = 2**31 - 1
_MOST_NAMES = 50
"""Resources, or causes, of an account. A user who may write a status could invent others."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a record has from the settings of the operator."""

    cluster: str = ""
    log_link: str = ""
    """A template as of `log_links`, "" for no links."""


@dataclass(frozen=True, slots=True)
class Identity:
    """By what a report groups jobs."""

    uid: str
    cluster: str
    namespace: str
    kind: str
    api_version: str
    name: str
    user_name: str
    queue: str


@dataclass(frozen=True, slots=True)
class Amounts:
    """What the pods of a job have held, in seconds of an accelerator, a core and a GiB."""

    gpu_seconds: float = 0.0
    cpu_core_seconds: float = 0.0
    memory_gib_seconds: float = 0.0
    resources: Mapping[str, float] = field(default_factory=dict)
    """The same by the name of the resource."""


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A row of the table of jobs. Times are UTC, durations seconds."""

    identity: Identity
    created: datetime | None
    started: datetime | None
    ended: datetime
    result: str
    """Succeeded, Failed or Deleted."""
    reason: str
    message: str
    replicas: int
    restarts: int
    preemptions: int
    seconds: Mapping[str, float]
    """By phase: queued, starting, running, restarting, suspended."""
    amounts: Amounts
    usage: Mapping[str, Any] | None
    """The account of the status; None where the operator kept none."""
    progress_percent: int | None
    log_link: str
    version: int
    """The resourceVersion; of two records of a job the one with the greater version is newer."""


@dataclass(frozen=True, slots=True)
class DayRecord:
    """A row of the table of days: what a job had used at the last look on a day (UTC)."""

    identity: Identity
    day: datetime
    """Its midnight."""
    amounts: Amounts


def job_record(job: Mapping[str, Any], place: Place, now: datetime, *, is_deleted: bool = False) -> JobRecord | None:
    """Return the record of a job that has ended, or that was deleted; None for one that goes on."""
    status = status_of(job)
    result = end_of(status)
    if not result and not is_deleted:
        return None
    meta = as_mapping(job.get("metadata"))
    created = time_of(meta.get("creationTimestamp"))
    started = _credible(time_of(status.get("startTime")), created, now)
    ended = _end(status, result, created, now) if result else _deletion(meta, created, now)
    usage = _account(status)
    identity = identity_of(job, place)
    return JobRecord(
        identity=identity,
        created=created,
        started=started,
        ended=ended,
        result=result or DELETED,
        **_explanation(status, result),
        replicas=_replicas(job.get("spec")),
        restarts=_whole(sum(_integer(value) for value in as_mapping(status.get("retries")).values())),
        preemptions=_preemptions(usage),
        seconds=_phases(status, usage, created, ended),
        amounts=amounts_of(job, None if result else now),
        usage=usage or None,
        progress_percent=_percent(status),
        log_link=_log_link(place.log_link, identity, started or created or ended, ended),
        version=_version(meta.get("resourceVersion")),
    )


def day_record(job: Mapping[str, Any], place: Place, now: datetime) -> DayRecord | None:
    """Return the row of today for a job that has run for long; None for another, or one without an account."""
    created = time_of(as_mapping(job.get("metadata")).get("creationTimestamp"))
    if end_of(status_of(job)) or not account_in(job) or created is None:
        return None
    if (now - created).total_seconds() < LONG_RUNNING:
        return None
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return DayRecord(identity_of(job, place), midnight, amounts_of(job, now))


def identity_of(job: Mapping[str, Any], place: Place) -> Identity:
    meta = as_mapping(job.get("metadata"))
    labels, annotations = as_mapping(meta.get("labels")), as_mapping(meta.get("annotations"))
    marks = {**annotations, **labels}
    scheduling = as_mapping(as_mapping(as_mapping(job.get("spec")).get("runPolicy")).get("schedulingPolicy"))
    return Identity(
        uid=clean(meta.get("uid"), LONGEST_NAME),
        cluster=clean(place.cluster, LONGEST_NAME),
        namespace=clean(meta.get("namespace"), LONGEST_NAME),
        kind=clean(job.get("kind"), LONGEST_NAME),
        api_version=clean(job.get("apiVersion"), LONGEST_NAME),
        name=clean(meta.get("name"), LONGEST_NAME),
        user_name=clean(next((marks[name] for name in _USERS if marks.get(name)), ""), LONGEST_NAME),
        queue=clean(labels.get(_QUEUE_LABEL) or scheduling.get("queue"), LONGEST_NAME),
    )


def amounts_of(job: Mapping[str, Any], now: datetime | None) -> Amounts:
    """What the account of a job has, with what it has held since then up to `now`; None adds nothing."""
    account = account_in(job)
    resources = _numbers(account.get("resourceSeconds"))
    as_of = time_of(account.get("asOf"))
    if now is not None and as_of is not None:
        since = max(0.0, (now - as_of).total_seconds())
        for name, held in _numbers(account.get("held")).items():
            resources[name] = min(resources.get(name, 0.0) + held * since, _MOST)
    return Amounts(
        gpu_seconds=min(sum(seconds for name, seconds in resources.items() if is_accelerator(name)), _MOST),
        cpu_core_seconds=resources.get("cpu", 0.0),
        memory_gib_seconds=resources.get("memory", 0.0),
        resources=resources,
    )


def clean(value: Any, longest: int) -> str:
    """A text without what a database refuses (NUL, halves of surrogates), of `longest` characters; "" for no text."""
    text = value if isinstance(value, str) else ""
    text = text[: 2 * longest].replace("\0", "").encode("utf-8", "replace").decode("utf-8")
    return text[:longest]


def _log_link(template: str, identity: Identity, started: datetime, ended: datetime) -> str:
    values = {"namespace": identity.namespace, "name": identity.name, "uid": identity.uid}
    return log_links.fill(template, values, {"started": started, "ended": ended})


def _credible(time: datetime | None, created: datetime | None, now: datetime) -> datetime | None:
    """The time, unless it is before the creation of the job or in the future."""
    if time is None or time > now + _SKEW or (created is not None and time < created):
        return None
    return time


def _end(status: Mapping[str, Any], result: str, created: datetime | None, now: datetime) -> datetime:
    """The same for each look at a status, so that a job that is recorded again stays in its place."""
    given = (status.get("completionTime"), true_conditions(status).get(result), status.get("startTime"))
    found = (_credible(time_of(one), created, now) for one in given)
    return next((one for one in found if one is not None), created or now)


def _deletion(meta: Mapping[str, Any], created: datetime | None, now: datetime) -> datetime:
    asked = time_of(meta.get("deletionTimestamp")) if is_leaving({"metadata": meta}) else None
    return _credible(asked, created, now) or now


def _explanation(status: Mapping[str, Any], result: str) -> dict[str, str]:
    failure = as_mapping(status.get("failure"))
    condition: Mapping[str, Any] = next(
        (one for one in conditions_of(status) if one.get("type") == result and one.get("status") == "True"), {}
    )
    return {
        "reason": clean(failure.get("reason") or condition.get("reason"), LONGEST_NAME),
        "message": clean(failure.get("message") or condition.get("message") or status.get("reason"), LONGEST_MESSAGE),
    }


def _replicas(spec: Any) -> int:
    """How many replicas the spec asks for, in whichever layout."""
    if isinstance(spec, list):
        return _count(spec)
    found = [value for name, value in as_mapping(spec).items() if str(name).lower().endswith(("replicaspecs", "specs"))]
    return _count(found[0] if found else as_mapping(spec).get("replicas"))


def _count(replicas: Any) -> int:
    """Of a mapping by type, a list, or one replica spec."""
    if isinstance(replicas, list):
        return _whole(sum(_one(entry) for entry in replicas))
    if not isinstance(replicas, Mapping):
        return 0
    if "template" in replicas or isinstance(replicas.get("replicas"), int):
        return _one(replicas)
    return _whole(sum(_one(entry) for entry in replicas.values()))


def _one(entry: Any) -> int:
    """A replica spec without a number has one replica."""
    if not isinstance(entry, Mapping):
        return 0
    given = entry.get("count", entry.get("replicas"))
    return _integer(given) if isinstance(given, int) else 1


def _account(status: Mapping[str, Any]) -> dict[str, Any]:
    """The part of an account that is for users, with at most `_MOST_NAMES` names each."""
    given = as_mapping(status.get("usage"))
    if not given:
        return {}
    listed = given.get("interruptions")
    as_of = time_of(given.get("asOf"))
    interruptions = [as_mapping(one) for one in (listed if isinstance(listed, list) else ())[:_MOST_NAMES]]
    return {
        "asOf": None if as_of is None else log_links.rfc3339(as_of),
        "seconds": {name: value for name, value in _numbers(given.get("seconds")).items() if name in _PHASES},
        "resourceSeconds": _numbers(given.get("resourceSeconds")),
        "interruptions": [
            {
                "cause": clean(one.get("cause"), 63),
                "count": _integer(one.get("count")),
                "seconds": _number(one.get("seconds")),
                "resourceSeconds": _numbers(one.get("resourceSeconds")),
            }
            for one in interruptions
        ],
    }


def _preemptions(usage: Mapping[str, Any]) -> int:
    """How often the cluster took a pod away: preemptions, evictions and lost nodes."""
    entries: Iterable[Mapping[str, Any]] = usage.get("interruptions", ())
    return _whole(sum(one["count"] for one in entries if one["cause"] == _DISRUPTION))


def _phases(
    status: Mapping[str, Any], usage: Mapping[str, Any], created: datetime | None, ended: datetime
) -> dict[str, float]:
    """Those of the account; without one what the times of the status tell."""
    if usage:
        return {phase: usage["seconds"].get(phase, 0.0) for phase in _PHASES}
    found = dict.fromkeys(_PHASES, 0.0)
    started = _credible(time_of(status.get("startTime")), created, ended)
    if created is None:
        return found
    if started is None:
        return {**found, "queued": (ended - created).total_seconds()}
    running = next((one for one in conditions_of(status) if one.get("type") == _RUNNING), None)
    ran = _credible(time_of((running or {}).get("lastTransitionTime")), started, ended)
    if ran is None or (running or {}).get("status") != "True":
        ran = started
    return {
        **found,
        "queued": (started - created).total_seconds(),
        "starting": (ran - started).total_seconds(),
        "running": max(0.0, (ended - ran).total_seconds()),
    }


def _percent(status: Mapping[str, Any]) -> int | None:
    value = as_mapping(status.get("trainerStatus")).get("progressPercentage")
    is_percent = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 100
    return value if is_percent else None


def _version(value: Any) -> int:
    """0 for one that is no number: then the record that is written last counts."""
    text = value if isinstance(value, str) else ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0


def _numbers(value: Any) -> dict[str, float]:
    found = {}
    for name, one in list(as_mapping(value).items())[:_MOST_NAMES]:
        if number := _number(one):
            found[clean(name, LONGEST_NAME)] = number
    return found


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST:
        return 0.0
    return float(value) if math.isfinite(value) else 0.0


def _integer(value: Any) -> int:
    return _whole(value) if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _whole(value: int) -> int:
    return min(value, _MOST_INTEGER)
