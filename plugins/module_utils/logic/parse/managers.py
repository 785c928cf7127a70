"""Which operator runs a job: ``spec.runPolicy.managedBy``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob


def is_ours(job: DLJob) -> bool:
    """Whether this operator runs ``job``."""
    return job.run_policy.managed_by in (*c.MANAGED_BY_US, *job.flavor.managers)


def run_policy_of(resource: Mapping[str, Any]) -> Mapping[str, Any]:
    """``spec.runPolicy`` of a job that may be invalid, unvalidated."""
    return as_mapping(as_mapping(resource.get("spec")).get("runPolicy"))


def names_another(resource: Mapping[str, Any], framework: Framework) -> bool:
    """Whether ``resource``, which may be invalid, names another controller: then its errors are not ours to report."""
    manager = run_policy_of(resource).get("managedBy")
    ours = {*c.MANAGED_BY_US, *(name for flavor in framework.flavors for name in flavor.managers)}
    return isinstance(manager, str) and manager not in ours


RECREATE = "Kueue has given the quota of the job back: mend it, delete it and create it again"
"""What to do about a failed job of Kueue's that another one could start again by an edit."""


def is_queued(metadata: Mapping[str, Any]) -> bool:
    """Whether Kueue admits the job with this ``metadata``, for one of the kinds that it knows.

    Once the job has failed, Kueue admits it no more, and its quota is free. Started again, it would use what another
    job has.
    """
    return bool(as_mapping(metadata.get("labels")).get(c.LABEL_KUEUE_QUEUE))


def is_copy_of_multikueue(metadata: Mapping[str, Any]) -> bool:
    """Whether Kueue copied the job from its manager cluster, and deletes the copy itself once it has its final status.

    If it is gone before that, Kueue runs the job again.
    """
    return c.LABEL_MULTIKUEUE_ORIGIN in as_mapping(metadata.get("labels"))
