"""Filter for the defaults of the pods of an MPIJob."""

from __future__ import annotations

DOCUMENTATION = r"""
name: mpi_pod
short_description: Defaults of the pod template of an MPIJob's launcher or worker
version_added: 0.2.0
description:
  - Computes the mounts of the SSH keys, in the launcher also that of the hostfile, for the first container of the
    template.
  - A worker whose first container has neither C(command) nor C(args) runs C(/usr/sbin/sshd -De).
  - In a job of the version C(v1) it is C(sleep 365d). The launcher then has, instead of SSH keys, an init container
    that brings C(kubectl) and waits for the workers, and a ServiceAccount that may use it.
extends_documentation_fragment: [dljob.operator.hook]
options:
  _input:
    description:
      - The cluster spec for one replica, as M(dljob.operator.reconcile) passes it to the hook C(pod). The filter reads
        C(sshAuthMountPath) and C(runLauncherAsWorker) of its C(spec).
"""

EXAMPLES = r"""
- name: Show the mounts of a worker
  ansible.builtin.debug:
    msg: "{{ (cluster | dljob.operator.mpi_pod).spec.containers[0].volumeMounts }}"
  vars:
    cluster:
      job: {name: pi, namespace: default, form: v1}
      templates:
        Worker: {annotations: {}, containers: [worker], fields: {}}
      spec: {sshAuthMountPath: /home/mpiuser/.ssh}
      task: {type: Worker, index: 0, rank: 1}
"""

RETURN = r"""
_value:
  description: A partial PodTemplateSpec. The job's own template takes precedence, except in labels.
  type: dict
"""

from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.mpi import hooks
from ansible_collections.dljob.operator.plugins.plugin_utils.hook_filter import HookFilter


class FilterModule(HookFilter, name="mpi_pod", needs=("job", "templates", "spec", "task"), hook=hooks.pod_defaults):
    """Ansible's entry point."""
