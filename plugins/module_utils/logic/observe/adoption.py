"""Jobs that ran under another operator: their pods and Services go on under this one.

training-operator v1 names the objects of a job as this operator does, and makes the job their controller. They lack the
labels of this operator, which finds them when a name is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import labels
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import batch_job
from ansible_collections.dljob.operator.plugins.module_utils.shared.event import EventNote
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Deletion

_LABELS = (c.LABEL_MANAGED_BY, c.LABEL_JOB_UID, c.LABEL_REPLICA_TYPE, c.LABEL_REPLICA_INDEX, c.LABEL_ATTEMPT)
_ANNOTATIONS = (c.ANNOTATION_SPEC_HASH, c.ANNOTATION_LIFETIME, c.ANNOTATION_SERVICES)
SHOWN = 5
"""Names in the Event."""


def marks(metadata: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The labels and annotations by which this operator knows an object with the intended ``metadata``.

    No other operator knows groups of replicas, so a pod of one has another template. Without a spec hash it is
    replaced.
    """
    annotations = (c.ANNOTATION_LIFETIME,) if c.LABEL_REPLICA_GROUP in (metadata.get("labels") or {}) else _ANNOTATIONS
    return {
        field: {name: value for name, value in (metadata.get(field) or {}).items() if name in names}
        for field, names in (("labels", _LABELS), ("annotations", annotations))
    }


def missing_labels(metadata: Mapping[str, Any], uid: str) -> list[str]:
    """Those of the labels ``<name>=<value>`` that an object with this ``metadata`` lacks to be found as the job's."""
    found = metadata.get("labels") or {}
    return [f"{name}={value}" for name, value in labels(uid).items() if found.get(name) != value]


def lost_marks(wanted: Mapping[str, Any], found: Mapping[str, Any], uid: str) -> list[str]:
    """Those labels and annotations of the intended metadata that the API server has stored otherwise: a webhook has
    removed or changed them. None of an object that lacks the labels of the job too: it is adopted."""
    if missing_labels(found, uid):
        return []
    return [
        name
        for field, ours in marks(wanted).items()
        for name, value in ours.items()
        if (found.get(field) or {}).get(name) != value
    ]


def may_be_pending(job: DLJob, observed: Observed) -> bool:
    """Whether the job may have pods that are not adopted: it has a status, and not every replica has a known pod."""
    return bool(job.status) and c.LABEL_JOB_NAME_V1 in job.flavor.labels and len(observed.pods) < job.total


def may_be_pending_of(framework: Framework) -> bool:
    """The same for an invalid job, of which the number of replicas is unknown."""
    return any(c.LABEL_JOB_NAME_V1 in flavor.labels for flavor in framework.flavors)


def all_deletions(observed: Observed) -> tuple[Deletion, ...]:
    """The deletions of all pods of the job, adopted or not, without those that terminate."""
    own = (batch_job.deletion(pod) for pod in observed.pods if not pod.deleting)
    return (*own, *(deletion(pod) for pod in observed.foreign))


def deletion(pod: PodState) -> Deletion:
    """The deletion of a pod that is not adopted, by uid."""
    return Deletion("Pod", pod.name, pod.uid, is_foreign=True)


def event(adopted: Sequence[str]) -> EventNote:
    """The Event for the objects ``adopted``, each ``<kind>/<name>``."""
    names = sorted(adopted)
    shown = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
    return EventNote("Normal", c.EVENT_ADOPTED, f"Adopted {len(names)} objects of another operator: {shown}")
