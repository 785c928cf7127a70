"""Whether a job has one headless Service for all replicas, or also one a replica, as in training-operator v1.

The annotation ``dljob.operator/services`` of the job decides, else the setting of the operator. The names in the
environment of v1's TFJob follow from it, so a job keeps what its pods were created with: neither a new setting nor a
new release removes a name that a running process uses, and none replaces a pod.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import (
    SERVICES,
    SERVICES_PER_JOB,
    SERVICES_PER_REPLICA,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import ANNOTATION_SERVICES
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import SERVICE_JOB, ApiFlavor, Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed


def requested(annotations: Any, flavor: ApiFlavor, framework: Framework, errors: list[str]) -> tuple[str, bool]:
    """What a new job gets, and whether its ``annotations`` ask for that. Adds what is wrong to ``errors``.

    A flavor whose only Service is named like the job has that one, as in mpi-operator.
    """
    value = as_mapping(annotations).get(ANNOTATION_SERVICES)
    if value is not None and value not in SERVICES:
        errors.append(
            f"metadata.annotations: {ANNOTATION_SERVICES} is {value!r}: it must be {' or '.join(SERVICES)}, or absent "
            "for the operator's setting"
        )
        value = None
    if flavor.service == SERVICE_JOB:
        return SERVICES_PER_JOB, True
    return (framework.services, False) if value is None else (str(value), True)


def validated(job: DLJob) -> DLJob:
    """``job`` with the scope whose names its variables must have room for.

    One that has begun may have been created under another setting of the operator, which does not make it invalid.
    """
    may_differ = bool(job.status) and not job.asks_for_services
    return dataclasses.replace(job, services=SERVICES_PER_JOB) if may_differ else job


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
