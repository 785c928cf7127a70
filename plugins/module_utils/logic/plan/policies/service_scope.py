"""Whether a job has one headless Service for all replicas, or also one a replica, as in training-operator v1.

The annotation ``dljob.operator/services`` of the job decides, else the setting of the operator. The names in the
environment of v1's TFJob follow from it, so a job keeps what its pods were created with: neither a new setting nor a
new release removes a name that a running process uses, and none replaces a pod.
"""

from __future__ import annotations

import dataclasses

from ansible_collections.dljob.operator.plugins.module_utils.shared.names import SERVICES_PER_JOB, SERVICES_PER_REPLICA
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import SERVICE_JOB
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed


def settled(job: DLJob, observed: Observed) -> DLJob:
    """``job`` with the scope that it has, which is not the requested one where its objects have another."""
    scope = _settled(job, observed)
    return job if scope == job.services else dataclasses.replace(job, services=scope)


def _settled(job: DLJob, observed: Observed) -> str:
    if job.flavor.service == SERVICE_JOB:
        return SERVICES_PER_JOB
    if any(pod.services == SERVICES_PER_REPLICA for pod in observed.pods):
        return SERVICES_PER_REPLICA
    if job.asks_for_services or not (observed.pods or observed.services):
        return job.services
    marked = any(found.services == SERVICES_PER_REPLICA for found in observed.owned_objects.values())
    return SERVICES_PER_REPLICA if marked and not observed.pods else SERVICES_PER_JOB
