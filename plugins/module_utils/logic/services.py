"""The job's Services: one headless Service for all replicas, and v1's short name of the chief."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic import naming
from ansible_collections.dljob.operator.plugins.module_utils.logic.ownership import owner_reference
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import NAMES_JOB
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob


def build_services(job: DLJob) -> tuple[Mapping[str, Any], ...]:
    """Every Service that ``job`` needs, however many replicas it has."""
    everyone = _headless(job, naming.service_name(job), {c.LABEL_JOB_UID: job.uid})
    if job.flavor.names != NAMES_JOB:
        return (everyone,)
    chief = {
        c.LABEL_JOB_UID: job.uid,
        c.LABEL_REPLICA_TYPE: job.success_target.type.lower(),
        c.LABEL_REPLICA_INDEX: str(job.success_target.index),
    }
    return (everyone, _headless(job, naming.host_name(job, job.success_target.type, job.success_target.index), chief))


def _headless(job: DLJob, name: str, selector: Mapping[str, str]) -> Mapping[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": job.namespace,
            "labels": {c.LABEL_MANAGED_BY: c.MANAGER, c.LABEL_JOB_UID: job.uid},
            "ownerReferences": [owner_reference(job)],
        },
        "spec": {
            "clusterIP": "None",
            # processes look each other up while they start: their names must not wait for readiness
            "publishNotReadyAddresses": True,
            "selector": dict(selector),
        },
    }
