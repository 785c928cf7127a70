"""Deterministic object names: the API server refuses a second pod of a rank, because it has the name of the first."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Iterable

from ansible_collections.dljob.operator.plugins.module_utils.shared.names import SERVICES_PER_REPLICA
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import NAME_LIMIT
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import NAMES_JOB, SERVICE_JOB
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob

_ALPHABET = string.digits + string.ascii_lowercase
RUNTIME_ID_LENGTH = 8
"""With 36**8 ids, a collision among 10,000 jobs of a namespace has a probability of 2 in 100,000 (with four characters
it is certain)."""
_SUFFIX_LENGTH = 5


def _digest(parts: Iterable[object], length: int) -> str:
    """A short, stable hash of lower-case letters and digits."""
    number = int.from_bytes(hashlib.sha256("/".join(map(str, parts)).encode()).digest()[:16], "big")
    out = []
    for _ in range(length):
        number, digit = divmod(number, len(_ALPHABET))
        out.append(_ALPHABET[digit])
    return "".join(out)


def runtime_id(uid: str) -> str:
    """The default runtime id. It is derived from the uid, so it stays the same when the operator restarts."""
    return _digest((uid,), RUNTIME_ID_LENGTH)


def host_name(job: DLJob, type_: str, index: int) -> str:
    """The pod's hostname. It is the same for every attempt, so that the other replicas can reconnect to it."""
    stem = job.name if job.flavor.names == NAMES_JOB else None
    kind = type_.lower()
    group = job.group(type_)
    if stem and group is not None and not group.indexed:
        return f"{stem}-{kind}"
    return f"{stem}-{kind}-{index}" if stem else f"{kind}-{job.runtime_id}-{index}"


def pod_name(job: DLJob, type_: str, index: int) -> str:
    """v1: the hostname; v1alpha1: the hostname and five characters that differ by job, like mx-operator's names.

    It is the same for every attempt and spec: an operator with an outdated cache, which plans another attempt than the
    operator that has replaced it, would create a second pod of the replica under a name of its own.
    """
    host = host_name(job, type_, index)
    if job.flavor.names == NAMES_JOB:
        return host
    return f"{host}-{_digest((job.uid, type_.lower(), index), _SUFFIX_LENGTH)}"


def service_name(job: DLJob) -> str:
    """The name of the job's headless Service, which is the subdomain of its pods."""
    return job.name if job.flavor.service == SERVICE_JOB else f"{job.kind.lower()}-{job.runtime_id}"


def address(job: DLJob, type_: str, index: int) -> str:
    """The DNS name by which the job's pods reach a replica, independent of the cluster's domain."""
    host = host_name(job, type_, index)
    if job.services == SERVICES_PER_REPLICA:
        return host  # the name of its Service
    return host if job.flavor.names == NAMES_JOB else f"{host}.{service_name(job)}"


def too_long(job: DLJob) -> list[str]:
    """One error per name that exceeds its limit; empty where all names fit."""
    errors = []
    runtime_id_field = f"spec.{job.flavor.runtime_id_fields[0]}"
    service = service_name(job)
    if len(service) > NAME_LIMIT:
        errors.append(
            f"{runtime_id_field} is {len(service) - NAME_LIMIT} characters too long: the job's Service is named "
            f"{service}, and a Service's name has at most {NAME_LIMIT} characters"
        )
    for group in job.groups:
        last = max(group.replicas - 1, 0)
        name = pod_name(job, group.type, last)
        if len(name) > NAME_LIMIT:
            source = "metadata.name" if job.flavor.names == NAMES_JOB else runtime_id_field
            errors.append(
                f"{source} is {len(name) - NAME_LIMIT} characters too long: its pods are named like {name}, "
                f"and a pod's hostname has at most {NAME_LIMIT} characters"
            )
    if len(job.name) > NAME_LIMIT:
        errors.append(
            f"metadata.name has {len(job.name)} characters: it is also a label of the pods, "
            f"which has at most {NAME_LIMIT}"
        )
    return errors
