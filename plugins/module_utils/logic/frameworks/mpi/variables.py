"""The variables that tell ``mpirun`` of Open MPI, Intel MPI or MPICH where its hosts are and how to reach them.

Source: mpi-operator's v2beta1 MPIJob (0.8), which sets them in the first container of a pod, in this order. Those of
Open MPI 5 (``PRTE_MCA_*``) and ``HYDRA_LAUNCHER_EXTRA_ARGS`` are additions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LAUNCHER, WORKER = "Launcher", "Worker"

OPEN_MPI, INTEL, MPICH = "OpenMPI", "Intel", "MPICH"
IMPLEMENTATIONS = (OPEN_MPI, INTEL, MPICH)

CONFIG_PATH = "/etc/mpi"
HOSTFILE = "hostfile"
_HOSTFILE = f"{CONFIG_PATH}/{HOSTFILE}"
NO_GPU = {"NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""}
_SSH_ARGUMENTS = "-o ConnectionAttempts=10"
"""An sshd may start later than the launcher."""


def mpi_environment(cluster: Mapping[str, Any]) -> dict[str, str]:
    """The environment of the launcher or of a worker, by the task's type."""
    role = {"K_MPI_JOB_ROLE": cluster["task"]["type"].lower()}
    if cluster["task"]["type"] != LAUNCHER:
        return role
    slots = str(slots_of(cluster))
    by_implementation = {
        OPEN_MPI: {
            "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
            "OMPI_MCA_orte_default_hostfile": _HOSTFILE,
            "OMPI_MCA_plm_rsh_args": _SSH_ARGUMENTS,
            "OMPI_MCA_orte_set_default_slots": slots,
            # Open MPI 5 starts its hosts by PRRTE, which ignores the four above: without these, mpirun 5.0.11 runs all
            # processes in the launcher and ends with 0. Open MPI 4 ignores these
            "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
            "PRTE_MCA_prte_default_hostfile": _HOSTFILE,
            "PRTE_MCA_plm_ssh_args": _SSH_ARGUMENTS,
            "PRTE_MCA_prte_set_default_slots": slots,
        },
        INTEL: {
            "I_MPI_HYDRA_HOST_FILE": _HOSTFILE,
            "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": _SSH_ARGUMENTS,
            "I_MPI_PERHOST": slots,
        },
        MPICH: {
            "HYDRA_HOST_FILE": _HOSTFILE,
            # mpi-operator's name, which no MPICH from 3.4 to 5.0 reads, and MPICH's own
            "HYDRA_LAUNCH_EXTRA_ARGS": _SSH_ARGUMENTS,
            "HYDRA_LAUNCHER_EXTRA_ARGS": _SSH_ARGUMENTS,
        },
    }
    # a launcher that does not train must see no GPU of its node, which some container runtimes would show it
    hidden = {} if launcher_works(cluster) else NO_GPU
    return {**role, **by_implementation[implementation_of(cluster)], **hidden}


def implementation_of(cluster: Mapping[str, Any]) -> str:
    return str(cluster["spec"].get("mpiImplementation") or OPEN_MPI)


def slots_of(cluster: Mapping[str, Any]) -> int:
    """How many processes a host runs."""
    slots = cluster["spec"].get("slotsPerWorker")
    return 1 if slots is None else int(slots)


def launcher_works(cluster: Mapping[str, Any]) -> bool:
    """Whether the launcher's pod is a host too."""
    return cluster["spec"].get("runLauncherAsWorker") is True
