"""The hooks of MPI: an MPIJob v1 reaches its workers by ``kubectl exec``, one of v2beta1 or a DLJob by SSH."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.mpi import v1, v2beta1
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.mpi.v1_variables import (
    kubexec_environment,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.mpi.variables import mpi_environment
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Cluster


def _is_v1(cluster: Cluster) -> bool:
    return bool(cluster.get("job", {}).get("version") == "v1")


def validate(cluster: Cluster) -> Iterable[str]:
    """The errors of the job's own fields."""
    return (v1 if _is_v1(cluster) else v2beta1).validate(cluster)


def environment(cluster: Cluster) -> Mapping[str, str]:
    """The variables of the launcher or of a worker."""
    return (kubexec_environment if _is_v1(cluster) else mpi_environment)(cluster)


def pod_defaults(cluster: Cluster) -> Mapping[str, Any]:
    """The defaults of the template of the launcher or of a worker."""
    return (v1 if _is_v1(cluster) else v2beta1).pod_defaults(cluster)


def objects(cluster: Cluster) -> Sequence[Mapping[str, Any]]:
    """The objects that the job owns besides its pods, its Service and its launcher."""
    return (v1 if _is_v1(cluster) else v2beta1).objects(cluster)
