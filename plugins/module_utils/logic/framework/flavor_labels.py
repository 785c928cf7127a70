"""The labels that a flavor declares, by which users find the objects of a job: of a replica's, and of the job's."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import placeholders
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.placeholders import fill, names
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import ApiFlavor, Cluster
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob


def of_replica(flavor: ApiFlavor, replica: Cluster, role: str = "") -> dict[str, str]:
    """Those of an object of the replica ``replica["task"]``; ``role`` is "master" for the pod of the success target."""
    return _filled(flavor.labels, {**placeholders(replica), "role": role})


def of_job(job: DLJob) -> dict[str, str]:
    """Those that are the same for all replicas: of the objects of the job as a whole."""
    values = {
        "job": job.name,
        "namespace": job.namespace,
        "uid": job.uid,
        "runtime_id": job.runtime_id,
        "kind": job.kind,
        "kind_lower": job.kind.lower(),
    }
    return _filled({name: text for name, text in job.flavor.labels.items() if names(text) <= values.keys()}, values)


def _filled(declared: Mapping[str, str], values: Mapping[str, object]) -> dict[str, str]:
    """Without labels that are empty because of a placeholder; those declared as "" stay."""
    filled = {name: fill(text, values) for name, text in declared.items()}
    return {name: text for name, text in filled.items() if text or declared[name] == ""}
