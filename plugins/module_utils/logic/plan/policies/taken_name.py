"""What the status says of a name that an object of somebody else has: whose object it is, and what to do about it.

The job waits until the object is gone. Only its own limits, such as ``activeDeadlineSeconds``, end the wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.owned_objects import text_of
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.shared.controller_reference import controller_of
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import owned_kind
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c

_ALWAYS = ("pods", "services")
"""Kinds that every job has. The command about the leftovers of one names these and the kind whose name is taken."""


def explain(manifest: Mapping[str, Any], present: Mapping[str, Any], resource: Mapping[str, Any]) -> str:
    """The sentence about ``present``, which has the name that the job ``resource`` needs for ``manifest``."""
    text = f"{text_of(manifest)}: an object of that name exists and does not belong to this job"
    controller = controller_of(present)
    leftover = _label_of_leftovers(present, resource) if controller is None else ""
    if leftover:
        kinds = ",".join(sorted({*_ALWAYS, owned_kind(manifest).plural}))
        return (
            f"{text}: a deleted job has left it without an owner; "
            f"the job waits until it is gone: kubectl delete {kinds} -l {leftover}"
        )
    whose = f", but to {controller.get('kind')} {controller.get('name')}" if controller else ", and has no owner"
    return f"{text}{whose}; the job waits until it is gone: delete it, or rename the job"


def _label_of_leftovers(present: Mapping[str, Any], resource: Mapping[str, Any]) -> str:
    """The label ``<name>=<value>`` of all objects of the deleted job to which ``present`` belonged; "" where none did.

    ``kubectl delete --cascade=orphan`` of a job leaves them, and so does a backup that restores them without it.
    """
    labels = as_mapping(as_mapping(present.get("metadata")).get("labels"))
    uid = labels.get(c.LABEL_JOB_UID)
    if labels.get(c.LABEL_MANAGED_BY) == c.MANAGER and uid and uid != resource["metadata"].get("uid"):
        return f"{c.LABEL_JOB_UID}={uid}"
    name = resource["metadata"]["name"]
    return f"{c.LABEL_JOB_NAME_V1}={name}" if labels.get(c.LABEL_JOB_NAME_V1) == name else ""
