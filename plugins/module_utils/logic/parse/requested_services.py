"""Whether a job asks for one headless Service for all replicas, or also for one a replica.

The annotation ``dljob.operator/services`` of the job decides, else the setting of the operator.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import SERVICES, SERVICES_PER_JOB
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import ANNOTATION_SERVICES
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import SERVICE_JOB, ApiFlavor, Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob


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
