"""Filter for the environment of an XGBoost process."""

from __future__ import annotations

DOCUMENTATION = r"""
name: xgboost_environment
short_description: Environment variables of one process of a distributed XGBoost job
version_added: 0.2.0
description:
  - Computes the variables from which an XGBoost program starts or finds the master's tracker (C(MASTER_ADDR),
    C(MASTER_PORT), C(WORLD_SIZE), C(RANK)), and those from which a LightGBM program writes its list of machines
    (C(WORKER_ADDRS), C(WORKER_PORT)).
  - A job without workers gets no list of workers.
extends_documentation_fragment: [dljob.operator.hook.environment]
"""

EXAMPLES = r"""
- name: Show the environment of the first worker
  ansible.builtin.debug:
    msg: "{{ cluster | dljob.operator.xgboost_environment }}"
  vars:
    cluster:
      job: {name: digits, namespace: default, form: v1}
      replicas:
        Master: [{host: digits-master-0, port: 9999, rank: 0}]
        Worker: [{host: digits-worker-0, port: 9999, rank: 1}]
      templates: {}
      spec: {}
      total: 2
      task: {type: Worker, index: 0, rank: 1}
"""

RETURN = r"""
_value:
  description: Variable name to value.
  type: dict
  sample:
    MASTER_PORT: "9999"
    MASTER_ADDR: digits-master-0
    WORLD_SIZE: "2"
    RANK: "1"
    PYTHONUNBUFFERED: "1"
    WORKER_PORT: "9999"
    WORKER_ADDRS: digits-worker-0
"""

from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.xgboost import xgboost_environment
from ansible_collections.dljob.operator.plugins.plugin_utils.hook_filter import HookFilter


class FilterModule(
    HookFilter, name="xgboost_environment", needs=("replicas", "total", "task"), hook=xgboost_environment
):
    """Ansible's entry point."""
