"""Filter that validates an MPIJob's own fields."""

from __future__ import annotations

DOCUMENTATION = r"""
name: mpi_validation
short_description: Errors in the own fields of an MPIJob
version_added: 0.2.0
description:
  - Validates C(slotsPerWorker), C(runLauncherAsWorker), C(sshAuthMountPath), C(launcherCreationPolicy) and
    C(mpiImplementation), and that an entry for workers has a replica.
  - In a job of the version C(v1) it validates C(slotsPerWorker) and C(mainContainer).
extends_documentation_fragment: [dljob.operator.hook.validation]
"""

EXAMPLES = r"""
- name: Show what is wrong
  ansible.builtin.debug:
    msg: "{{ cluster | dljob.operator.mpi_validation }}"
  vars:
    cluster:
      replicas:
        Launcher: [{host: pi-launcher, port: 2222, rank: 0}]
      spec: {slotsPerWorker: 0}
"""

RETURN = r"""
_value:
  description: One sentence per error, with the field and the fix. Empty for a valid job.
  type: list
  elements: str
  sample: ["spec.slotsPerWorker is 0: it must be a whole number of at least 1"]
"""

from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.mpi import hooks
from ansible_collections.dljob.operator.plugins.plugin_utils.hook_filter import HookFilter


class FilterModule(HookFilter, name="mpi_validation", needs=("replicas", "spec"), hook=hooks.validate):
    """Ansible's entry point."""
