"""Filter for the environment of an MXNet process."""

from __future__ import annotations

DOCUMENTATION = r"""
name: mxnet_environment
short_description: Environment variables of one process of a distributed MXNet job
version_added: 0.1.0
description:
  - Computes the variables of MXNet's parameter server (ps-lite).
  - C(DMLC_ROLE), C(DMLC_PS_ROOT_URI), C(DMLC_PS_ROOT_PORT), C(DMLC_NUM_SERVER), C(DMLC_NUM_WORKER) and
    C(DMLC_USE_KUBERNETES) for every job that has a scheduler, and C(PS_HEARTBEAT_INTERVAL) and C(PS_HEARTBEAT_TIMEOUT),
    with which the replacement of a lost worker can join.
  - For jobs of a v1 flavor also C(MX_CONFIG), the whole cluster in JSON, and for workers C(DMLC_WORKER_ID).
extends_documentation_fragment: [dljob.operator.hook.environment]
"""

EXAMPLES = r"""
- name: Show the environment of the second worker
  ansible.builtin.debug:
    msg: "{{ cluster | dljob.operator.mxnet_environment }}"
  vars:
    cluster:
      job: {name: digits, namespace: default, form: v1alpha1}
      replicas:
        Scheduler: [{host: scheduler-ab12-0, port: 9091, rank: 0}]
        Server: [{host: server-ab12-0, port: 9091, rank: 1}]
        Worker: [{host: worker-ab12-0, port: 9091, rank: 2}, {host: worker-ab12-1, port: 9091, rank: 3}]
      templates: {}
      total: 4
      task: {type: Worker, index: 1, rank: 3}
"""

RETURN = r"""
_value:
  description: Variable name to value. Empty for a job without a scheduler (C(jobMode=local)).
  type: dict
  sample: {DMLC_ROLE: worker, DMLC_NUM_WORKER: "2"}
"""

from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.mxnet import mxnet_environment
from ansible_collections.dljob.operator.plugins.plugin_utils.hook_filter import HookFilter


class FilterModule(HookFilter, name="mxnet_environment", needs=("job", "replicas", "task"), hook=mxnet_environment):
    """Ansible's entry point."""
