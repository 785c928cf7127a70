"""Filter for the environment of a PyTorch process."""

from __future__ import annotations

DOCUMENTATION = r"""
name: pytorch_environment
short_description: Environment variables of one process of a distributed PyTorch job
version_added: 0.1.0
description:
  - Computes the variables of C(torch.distributed.init_process_group) (C(MASTER_ADDR), C(MASTER_PORT), C(WORLD_SIZE),
    C(RANK)), and the arguments of C(torchrun) as its variables (C(PET_NNODES), C(PET_NPROC_PER_NODE) and others).
  - A job without a master gets torchrun's variables only. With C(elasticPolicy) they have the rendezvous of its
    workers, and the least and largest number of workers. Then C(PET_MAX_RESTARTS) is 10 by default, and
    C(TORCH_DISABLE_SHARE_RDZV_TCP_STORE) lets workers join a running job under PyTorch 2.6 and later.
  - For C(nprocPerNode) C(auto), the default, C(PET_NPROC_PER_NODE) is the CPU limit of the container C(pytorch) where
    that has no accelerator, because torchrun counts the processors of the node.
extends_documentation_fragment: [dljob.operator.hook]
options:
  _input:
    description:
      - The cluster spec for one replica, as M(dljob.operator.reconcile) passes it to environment filters. The filter
        reads the fields C(nprocPerNode) and C(elasticPolicy) of its C(spec).
"""

EXAMPLES = r"""
- name: Show the environment of the first worker
  ansible.builtin.debug:
    msg: "{{ cluster | dljob.operator.pytorch_environment }}"
  vars:
    cluster:
      job: {name: digits, namespace: default, form: v1}
      replicas:
        Master: [{host: digits-master-0, port: 23456, rank: 0}]
        Worker: [{host: digits-worker-0, port: 23456, rank: 1}]
      templates: {}
      spec: {nprocPerNode: "2"}
      total: 2
      task: {type: Worker, index: 0, rank: 1}
"""

RETURN = r"""
_value:
  description: Variable name to value.
  type: dict
  sample:
    PYTHONUNBUFFERED: "1"
    MASTER_ADDR: digits-master-0
    MASTER_PORT: "23456"
    PET_MASTER_ADDR: digits-master-0
    PET_MASTER_PORT: "23456"
    WORLD_SIZE: "4"
    RANK: "1"
    PET_NODE_RANK: "1"
    PET_NPROC_PER_NODE: "2"
    PET_NNODES: "2"
"""

from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.pytorch import hooks
from ansible_collections.dljob.operator.plugins.plugin_utils.hook_filter import HookFilter


class FilterModule(
    HookFilter, name="pytorch_environment", needs=("replicas", "spec", "total", "task"), hook=hooks.environment
):
    """Ansible's entry point."""
