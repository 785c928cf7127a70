"""Filter for the environment of a PaddlePaddle process."""

from __future__ import annotations

DOCUMENTATION = r"""
name: paddle_environment
short_description: Environment variables of one process of a distributed PaddlePaddle job
version_added: 0.2.0
description:
  - Computes the arguments of C(python -m paddle.distributed.launch) as its variables (C(PADDLE_MASTER),
    C(PADDLE_NNODES), C(PADDLE_JOB_ID)). The launcher of rank 0 gets its own IP address, by which it recognizes that it
    serves the others.
  - In a job with masters, which are parameter servers, the variables also have the numbers of servers and trainers of
    the pod (C(PADDLE_SERVER_NUM), C(PADDLE_TRAINER_NUM)). In a job without them it gets its rank (C(PADDLE_RANK)).
extends_documentation_fragment: [dljob.operator.hook.environment]
"""

EXAMPLES = r"""
- name: Show the environment of the second worker
  ansible.builtin.debug:
    msg: "{{ cluster | dljob.operator.paddle_environment }}"
  vars:
    cluster:
      job: {name: digits, namespace: default, form: v1}
      replicas:
        Worker:
          - {host: digits-worker-0, port: 36543, rank: 0}
          - {host: digits-worker-1, port: 36543, rank: 1}
      templates: {}
      spec: {}
      total: 2
      task: {type: Worker, index: 1, rank: 1}
"""

RETURN = r"""
_value:
  description: Variable name to value, or to its C(valueFrom).
  type: dict
  sample:
    PYTHONUNBUFFERED: "1"
    PADDLE_JOB_ID: digits
    PADDLE_NNODES: "2"
    PADDLE_MASTER: digits-worker-0:36543
    PADDLE_RANK: "1"
"""

from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.paddle import paddle_environment
from ansible_collections.dljob.operator.plugins.plugin_utils.hook_filter import HookFilter


class FilterModule(
    HookFilter, name="paddle_environment", needs=("job", "replicas", "total", "task"), hook=paddle_environment
):
    """Ansible's entry point."""
