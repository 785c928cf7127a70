"""Filter for the environment of an MPIJob's launcher and workers."""

from __future__ import annotations

DOCUMENTATION = r"""
name: mpi_environment
short_description: Environment variables of the launcher or of a worker of an MPIJob
version_added: 0.2.0
description:
  - Computes the variables by which C(mpirun) of Open MPI, Intel MPI or MPICH finds the hostfile, and C(K_MPI_JOB_ROLE).
  - For Open MPI the variables are those of version 4 (C(OMPI_MCA_*)) and of version 5 (C(PRTE_MCA_*)), each of which
    ignores the other's.
  - A worker has only C(K_MPI_JOB_ROLE), because its processes get their variables from C(mpirun).
  - In a job of the version C(v1) the launcher's variables name the script that runs C(kubectl exec), and a worker has
    none.
extends_documentation_fragment: [dljob.operator.hook]
options:
  _input:
    description:
      - The cluster spec for one replica, as M(dljob.operator.reconcile) passes it to environment filters. The filter
        reads C(mpiImplementation), C(slotsPerWorker) and C(runLauncherAsWorker) of its C(spec).
"""

EXAMPLES = r"""
- name: Show the environment of a launcher of MPICH
  ansible.builtin.debug:
    msg: "{{ cluster | dljob.operator.mpi_environment }}"
  vars:
    cluster:
      job: {name: pi, namespace: default, form: v1}
      replicas:
        Launcher: [{host: pi-launcher, port: 2222, rank: 0}]
        Worker: [{host: pi-worker-0, port: 2222, rank: 1}]
      templates: {}
      spec: {mpiImplementation: MPICH, runLauncherAsWorker: true}
      total: 2
      task: {type: Launcher, index: 0, rank: 0}
"""

RETURN = r"""
_value:
  description: Variable name to value.
  type: dict
  sample:
    K_MPI_JOB_ROLE: launcher
    HYDRA_HOST_FILE: /etc/mpi/hostfile
    HYDRA_LAUNCH_EXTRA_ARGS: -o ConnectionAttempts=10
    HYDRA_LAUNCHER_EXTRA_ARGS: -o ConnectionAttempts=10
"""

from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.mpi import hooks
from ansible_collections.dljob.operator.plugins.plugin_utils.hook_filter import HookFilter


class FilterModule(HookFilter, name="mpi_environment", needs=("spec", "task"), hook=hooks.environment):
    """Ansible's entry point."""
