"""Filter for the objects that an MPIJob owns besides its pods, its Service and its launcher."""

from __future__ import annotations

DOCUMENTATION = r"""
name: mpi_objects
short_description: Manifests of what an MPIJob owns besides its processes
version_added: 0.2.0
description:
  - Computes the Secret C(<job>-ssh), without data. By its annotation C(dljob.operator/generate) the operator generates
    a key pair when it creates the Secret.
  - Computes the ConfigMap C(<job>-config) with C(hostfile), which has all hosts, and C(discover_hosts.sh), which prints
    those that run.
  - In a job of the version C(v1) there is no Secret, and the ConfigMap has C(kubexec.sh) too. A ServiceAccount
    C(<job>-launcher), unless the launcher's template names one, a Role and a RoleBinding permit the launcher to run
    commands in the workers.
extends_documentation_fragment: [dljob.operator.hook]
options:
  _input:
    description:
      - The cluster spec of a job, as M(dljob.operator.reconcile) passes it to the hook C(objects). The filter reads
        C(mpiImplementation), C(slotsPerWorker) and C(runLauncherAsWorker) of its C(spec).
"""

EXAMPLES = r"""
- name: Show the hostfile
  ansible.builtin.debug:
    msg: "{{ (cluster | dljob.operator.mpi_objects)[1].data.hostfile }}"
  vars:
    cluster:
      job: {name: pi, namespace: default, form: v1}
      replicas:
        Launcher: [{host: pi-launcher, port: 2222, rank: 0}]
        Worker: [{host: pi-worker-0, port: 2222, rank: 1}]
      running: {Launcher: [], Worker: [0]}
      spec: {slotsPerWorker: 2}
"""

RETURN = r"""
_value:
  description: The manifests. The operator adds namespace, owner, its labels and a hash.
  type: list
  elements: dict
"""

from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.mpi import hooks
from ansible_collections.dljob.operator.plugins.plugin_utils.hook_filter import HookFilter


class FilterModule(HookFilter, name="mpi_objects", needs=("job", "replicas", "spec"), hook=hooks.objects):
    """Ansible's entry point."""
