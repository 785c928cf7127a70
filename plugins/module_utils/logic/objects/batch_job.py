"""Replicas that a batch/v1 Job runs: the Job's manifest, and the state of such a replica.

Kubernetes then creates and restarts the replica's pod. The operator creates the Job in place of the pod, deletes it in
place of the pod, and takes its end for the replica's. What differs from a pod of the operator's own:

- The Job's ``backoffLimit`` counts the failures of the replica, so a failed Job is final whatever the restart policy.
- The pod has a name with a random suffix. Its hostname is the Job's name, by which the other replicas reach it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.shared.gang_scheduler import (
    ANNOTATION_NATIVE,
    ANNOTATION_POD_GROUP,
    SCHEDULING_GROUP,
)
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import OWNED_KINDS
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import BatchJobRef, ContainerEnd, PodState
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Deletion

KIND = "Job"
Manifest = Mapping[str, Any]


def wrap(job: DLJob, pod: Manifest) -> Manifest:
    """The Job that runs ``pod``, a replica's Pod manifest.

    It gets no ``ttlSecondsAfterFinished``: the operator deletes the whole job when that time is over, not a part of it.
    Nor does it get ``activeDeadlineSeconds``: the operator applies it to the whole job, and a user may raise it.
    """
    metadata = pod["metadata"]
    limit = job.run_policy.backoff_limit
    template = {name: metadata[name] for name in ("labels", "annotations", "finalizers") if name in metadata}
    native = as_mapping(pod["spec"].get(SCHEDULING_GROUP)).get("podGroupName")
    return {
        "apiVersion": OWNED_KINDS[KIND].api_version,
        "kind": KIND,
        "metadata": {
            **{name: metadata[name] for name in ("name", "namespace", "labels", "ownerReferences")},
            "annotations": {
                **{
                    name: text
                    for name, text in metadata["annotations"].items()
                    if name in (c.ANNOTATION_SPEC_HASH, ANNOTATION_POD_GROUP)
                },
                **({ANNOTATION_NATIVE: native} if native else {}),
            },
        },
        "spec": {
            **({} if limit is None else {"backoffLimit": limit}),
            # a pod that terminates has the hostname still, and its processes run
            "podReplacementPolicy": "Failed",
            "template": {"metadata": template, "spec": pod["spec"]},
        },
    }


def pod_of(manifest: Manifest) -> Manifest:
    """The Pod, or the template of the Job's pods, with ``metadata`` and ``spec``."""
    template: Manifest = manifest["spec"]["template"] if manifest["kind"] == KIND else manifest
    return template


def with_pod(manifest: Manifest, pod: Manifest) -> Manifest:
    """``manifest`` with ``pod`` in place of :func:`pod_of`."""
    return {**manifest, "spec": {**manifest["spec"], "template": pod}} if manifest["kind"] == KIND else pod


def runs_replica(resource: Manifest) -> bool:
    """Whether that Job is one of :func:`wrap`, not one that a framework's hook returned."""
    labels = resource["metadata"].get("labels") or {}
    return c.LABEL_REPLICA_TYPE in labels and c.LABEL_ATTEMPT in labels


def state(resource: Manifest, own: PodState, pods: Sequence[PodState], before: Iterable[PodState] = ()) -> PodState:
    """The state of the replica that the Job ``resource`` runs.

    ``own`` is the Job's metadata as a pod's, ``pods`` are the pods that the Job controls. ``before`` are earlier states
    of such pods, some of which are gone, of which only the failure counts.
    """
    newest = max(pods, key=lambda pod: (not pod.deleting, pod.created, pod.name), default=None)
    every = [*pods, *(pod for pod in before if pod.uid not in {one.uid for one in pods})]
    last_failure = _last_failure(every)
    ref = BatchJobRef(own.name, own.uid)
    finished = _finished(resource)
    failed = finished is not None and finished.get("type") == "Failed"
    shown = newest or own
    has_exited = shown.ended is not None and shown.ended.code == 0 and shown.terminated
    # Kueue suspends a Job that is still active when its MPIJob has succeeded, and the pod is deleted with its log. So
    # an exit counts once the Job has ended by it; but one with 0 at once beside a sidecar, which may run on
    exit_counts = finished is not None or (has_exited and shown.is_active)
    awaits_job = has_exited and not exit_counts
    return dataclasses.replace(
        shown,
        type=own.type,
        index=own.index,
        attempt=own.attempt,
        phase=_phase(finished, shown, awaits_job),
        created=own.created,
        deleting=own.deleting,
        spec_hash=own.spec_hash,
        restarts=0,  # the Job counts them
        terminated=shown.terminated and exit_counts,
        ended=None if (failed and has_exited) or awaits_job else shown.ended,
        is_ready=shown.is_ready and not shown.deleting,
        is_active=finished is None and not awaits_job,
        reason=_reason(finished, shown) if failed and finished is not None else "",
        message=str(finished.get("message") or "") if failed and finished is not None else "",
        waiting="" if finished is not None else shown.waiting if newest else _suspended(resource),
        # a pod that a quota denies does not wait for its start: there is none
        pending_since=shown.pending_since if finished is None and newest else "",
        disrupted=finished is None and shown.disrupted,
        terminating=newest.terminating if newest else "",
        batch_job=ref,
        lacks_pod_since="" if finished is not None else _lacks_pod_since(own, pods),
        last_failure=last_failure,
        unseen_end=_unseen_end(finished, newest) if failed and finished and not last_failure else "",
        crash_loop=shown.crash_loop if finished is None else None,
        restarts_by_job=max(len(every) - 1, 0) + sum(pod.restarts for pod in every),
    )


def _phase(finished: Manifest | None, shown: PodState, awaits_job: bool) -> str:
    if finished is not None:
        return "Failed" if finished.get("type") == "Failed" else "Succeeded"
    # between two pods the replica waits for the next one
    return "Running" if (shown.phase == "Running" or awaits_job) and not shown.deleting else "Pending"


def _last_failure(pods: Iterable[PodState]) -> ContainerEnd | None:
    found = [(one.ended.finished_at, pod.created, pod.name, one) for pod in pods if (one := pod.last_failure)]
    return max(found, key=lambda one: one[:3])[3] if found else None


def _unseen_end(finished: Manifest, newest: PodState | None) -> str:
    """See :attr:`PodState.unseen_end`. The Job controller reports a failure once the pods have ended."""
    if newest is None or newest.deleting or newest.phase != "Running" or newest.disrupted:
        return ""
    return str(finished.get("lastTransitionTime") or "") if finished.get("reason") == c.REASON_BACKOFF else ""


def _lacks_pod_since(own: PodState, pods: Sequence[PodState]) -> str:
    """See :attr:`PodState.lacks_pod_since`."""
    if any(pod.phase not in ("Succeeded", "Failed") for pod in pods):
        return ""
    return max((pod.ended.finished_at if pod.ended else pod.created for pod in pods), default=own.created)


def _suspended(resource: Manifest) -> str:
    """Why a Job that is suspended has no pod, "" for one that is not."""
    conditions = (resource.get("status") or {}).get("conditions") or ()
    is_suspended = any(one.get("type") == "Suspended" and one.get("status") == "True" for one in conditions)
    return "somebody has suspended it" if is_suspended else ""


def _finished(resource: Manifest) -> Manifest | None:
    """The condition that ended the Job, ``None`` while it runs."""
    conditions = (resource.get("status") or {}).get("conditions") or ()
    return next(
        (one for one in conditions if one.get("type") in ("Complete", "Failed") and one.get("status") == "True"), None
    )


def _reason(condition: Manifest, pod: PodState) -> str:
    """The Job's reason, with that of its last pod where the cluster ended it: ``BackoffLimitExceeded/Evicted``."""
    reason = str(condition.get("reason") or "Error")
    return f"{reason}/{pod.reason}" if reason == c.REASON_BACKOFF and pod.reason else reason


def deletion(pod: PodState) -> Deletion:
    """The deletion of a replica's pod, or of the Job that runs it, by uid, not of a newer object of its name."""
    if pod.batch_job is None:
        return Deletion("Pod", pod.name, pod.uid)
    return Deletion(KIND, pod.batch_job.name, pod.batch_job.uid, OWNED_KINDS[KIND].api_version)
