"""Builds the job's Services: a headless Service for all replicas, and in v1 one with the success target's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic import naming, owned_objects
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import NAMES_JOB, SERVICE_JOB
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob


def build_services(job: DLJob) -> tuple[Mapping[str, Any], ...]:
    """All Services of ``job``. Their number does not depend on the number of replicas."""
    all_replicas = _headless(job, naming.service_name(job), {c.LABEL_JOB_UID: job.uid})
    if job.flavor.names != NAMES_JOB or job.flavor.service == SERVICE_JOB:
        return (all_replicas,)
    target = {
        c.LABEL_JOB_UID: job.uid,
        c.LABEL_REPLICA_TYPE: job.success_target.type.lower(),
        c.LABEL_REPLICA_INDEX: str(job.success_target.index),
    }
    name = naming.host_name(job, job.success_target.type, job.success_target.index)
    return (all_replicas, _headless(job, name, target))


def _headless(job: DLJob, name: str, selector: Mapping[str, str]) -> Mapping[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": owned_objects.metadata(job, name),
        "spec": {
            "clusterIP": "None",
            # processes resolve each other's names while they start, so DNS must not wait for readiness
            "publishNotReadyAddresses": True,
            "selector": dict(selector),
        },
    }
