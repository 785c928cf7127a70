"""A job's status from its pods, in one format for every flavor.

The plan of a reconcile computes the status. This module selects the job's pods and converts the status of the plan,
whose format differs by flavor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import (
    Owner,
    belongs_to_predecessor,
    is_owned_by,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.services import build_all
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.observed_state import build_observed_state
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import any_framework
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.flavors import flavor_of
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.plan import plan
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_count, as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import conditions
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.replica_statuses import (
    FAILED,
    RUNNING,
    SUCCEEDED,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import outcome
from ansible_collections.dljob.operator.plugins.module_utils.shared.batch_job_pods import is_of_batch_job
from ansible_collections.dljob.operator.plugins.module_utils.shared.controller_reference import controller_of
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import LAYOUT_SINGLE, STATUS_V1, Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, ReplicaGroup

Resource = Mapping[str, Any]

_STATES = {"active": RUNNING, "succeeded": SUCCEEDED, "failed": FAILED}
"""By v1's name of a count, the state as v1alpha1 names it."""


class AmbiguousJob(ValueError):
    """A manifest without a uid, and pods of several jobs of its name."""


def job_status(resource: Resource, framework: Framework, pods: Sequence[Resource], now: datetime) -> dict[str, Any]:
    """The status of the job ``resource`` at ``now``, computed from those of ``pods`` that belong to it. The
    ``framework`` of a DLJob is an adapted one (:mod:`.parse.any_framework`).

    Raises :class:`InvalidJob` or :class:`AmbiguousJob`.
    """
    uid = uid_of(resource, framework, pods)
    parse = any_framework.parse_any if any_framework.is_any(resource) else parse_job
    job = parse({**resource, "metadata": {**resource["metadata"], "uid": uid}}, framework)
    owner = Owner(job.namespace, uid)
    # a manifest may lack the namespace, so the pods are taken for those of the job's
    owned = [_with_owner(pod, owner) for pod in pods if belongs(pod, uid)]
    # Only pods are known. The job's Services are assumed to exist: CleanUp lasts until the operator records its end.
    observed = build_observed_state(owner, framework.container, owned, build_all(job, framework))
    planned = plan(job, framework, observed, now)
    status = job.status if planned.status is None else planned.status
    return {
        "state": status.get("state") or outcome(status) or "",
        "phase": status.get("phase") or "",
        "reason": status.get("reason") or "",
        "replicaStatuses": replica_counts(job, status),
        "conditions": [dict(condition) for condition in conditions.read_conditions(status)],
        "failure": _failure(status),
    }


# --- which pods are the job's


def belongs(pod: Resource, uid: str) -> bool:
    """Whether ``pod`` belongs to the job ``uid``: by its owner references, by its label only where it has none."""
    metadata = as_mapping(pod.get("metadata"))
    if metadata.get("ownerReferences") and not is_of_batch_job(pod):
        return is_owned_by(pod, Owner(str(metadata.get("namespace")), uid))
    return bool(uid) and as_mapping(metadata.get("labels")).get(c.LABEL_JOB_UID) == uid


def uid_of(resource: Resource, framework: Framework, pods: Iterable[Resource]) -> str:
    """The uid of the job ``resource``; a manifest that has none gets that of the job of its name which has pods.

    It is "" where there are no such pods.
    """
    metadata = resource["metadata"]
    if metadata.get("uid"):
        return str(metadata["uid"])
    labels = flavor_of(resource, framework).labels
    found = sorted({uid for pod in pods if (uid := _uid_by_name(pod, resource, labels))})
    if len(found) > 1:
        raise AmbiguousJob(
            f"metadata.uid is missing, and there are pods of {len(found)} jobs named {metadata['name']} "
            f"({', '.join(found)}): give the job as the cluster has it, or the pods of one job"
        )
    return found[0] if found else ""


def _uid_by_name(pod: Resource, resource: Resource, labels: Mapping[str, str]) -> str:
    """The uid of the job of ``pod`` where that job has the name of ``resource``, "" where it has another one.

    ``labels`` are those that the flavor declares.
    """
    name, namespace = resource["metadata"]["name"], resource["metadata"].get("namespace")
    metadata = as_mapping(pod.get("metadata"))
    if namespace and metadata.get("namespace") not in (None, namespace):
        return ""
    if metadata.get("ownerReferences"):
        # without a uid of its own the job takes any controller of its group, kind and name for another job
        unidentified = {**resource, "metadata": {"name": name, "uid": ""}}
        if not belongs_to_predecessor(pod, unidentified):
            return ""
        return str((controller_of(pod) or {}).get("uid", ""))
    pod_labels = as_mapping(metadata.get("labels"))
    expected = {
        label: text.replace("{job}", name).replace("{namespace}", metadata.get("namespace") or "")
        for label, text in labels.items()
        if "{job}" in text
    }
    has_name = any(pod_labels.get(label) == text for label, text in expected.items())
    return str(pod_labels.get(c.LABEL_JOB_UID) or "") if has_name else ""


def _with_owner(pod: Resource, owner: Owner) -> Resource:
    """``pod`` with the owner reference by which :func:`build_observed_state` knows the job's own pods."""
    reference = {"uid": owner.uid, "controller": True}
    metadata = {**pod["metadata"], "namespace": owner.namespace, "ownerReferences": [reference]}
    return {**pod, "metadata": metadata}


# --- the status, read back


def replica_counts(job: DLJob, status: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """By replica type how many replicas are desired, and how many of these are in which state.

    This is the inverse of :func:`.status.replica_statuses.render`, and also reads what peers wrote into a finished job.
    """
    counts = {}
    for group in job.groups:
        read = _entry(job, group, status)
        rest = max(group.replicas - sum(read.values()), 0)
        counts[group.type] = {"desired": group.replicas, **read, "pending": rest}
    return counts


def _entry(job: DLJob, group: ReplicaGroup, status: Mapping[str, Any]) -> dict[str, int]:
    """How many replicas of ``group`` are active, have succeeded and have failed."""
    statuses = status.get("replicaStatuses")
    if job.flavor.status != STATUS_V1:
        field = job.flavor.status_type_field
        entries = (as_mapping(x) for x in statuses) if isinstance(statuses, list) else ()
        entry = next((x for x in entries if str(x.get(field)).upper() == group.type.upper()), {})
        states = as_mapping(entry.get("ReplicasStates"))
        return {name: as_count(states.get(state)) for name, state in _STATES.items()}
    is_single = job.flavor.replicas_layout == LAYOUT_SINGLE
    entry = as_mapping(statuses if is_single else as_mapping(statuses).get(group.type))
    read = {name: as_count(entry.get(name)) for name in _STATES}
    up = str(status.get("replicas") or "").partition("/")[0]
    if is_single and up.isdecimal():
        # its active counts those that wait, too; the summary does not
        read["active"] = max(int(up) - read["succeeded"], 0)
    return read


def _failure(status: Mapping[str, Any]) -> dict[str, Any]:
    """Why the job failed, empty where it has not. ``log`` is the text from the container or from Kubernetes."""
    if outcome(status) != c.STATE_FAILED:
        return {}
    failure = as_mapping(status.get("failure"))
    failed = next((x for x in conditions.read_conditions(status) if x.get("type") == c.CONDITION_FAILED), {})
    log = failure.get("message") or ""
    message = failed.get("message") or log
    return {
        "pod": failure.get("pod") or "",
        "container": failure.get("container") or "",
        "exitCode": failure.get("exitCode"),
        "reason": failure.get("reason") or failed.get("reason") or "",
        "message": message,
        "log": log if log != message else "",
    }
