"""The variables with which ``mpirun`` reaches the hosts of an MPIJob v1: by ``kubectl exec``, through a script.

Source: training-operator 1.9's MPIJob, which sets them in the first container of the launcher, in this order. Those of
Open MPI 5 (``PRTE_MCA_*``) and ``*_no_tree_spawn`` are additions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import template_of
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.mpi.variables import (
    CONFIG_PATH,
    HOSTFILE,
    LAUNCHER,
    NO_GPU,
)

KUBEXEC = "kubexec.sh"
"""The script that runs a command on a host."""
_KUBEXEC = f"{CONFIG_PATH}/{KUBEXEC}"
_HOSTFILE = f"{CONFIG_PATH}/{HOSTFILE}"


def kubexec_environment(cluster: Mapping[str, Any]) -> dict[str, str]:
    """The environment of the launcher. Workers have none."""
    if cluster["task"]["type"] != LAUNCHER:
        return {}
    return {
        "OMPI_MCA_plm_rsh_agent": _KUBEXEC,
        "OMPI_MCA_orte_default_hostfile": _HOSTFILE,
        # else mpirun has hosts 65 and up started by the first 64, which have neither kubectl nor the right to use it
        "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
        # the same for Open MPI 5, whose PRRTE reads none of the above
        "PRTE_MCA_plm_ssh_agent": _KUBEXEC,
        "PRTE_MCA_prte_default_hostfile": _HOSTFILE,
        "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
        **({} if launcher_has_gpu(cluster) else NO_GPU),
        "I_MPI_HYDRA_BOOTSTRAP": "rsh",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC": _KUBEXEC,
    }


def launcher_has_gpu(cluster: Mapping[str, Any]) -> bool:
    """Whether the launcher is a host too, which in v1 it is if it limits a resource that has "gpu" in its name."""
    return any("gpu" in name for name in template_of(cluster, LAUNCHER, 0)["limits"])
