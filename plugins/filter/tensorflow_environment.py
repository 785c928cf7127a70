"""Filter for the environment of a TensorFlow process."""

from __future__ import annotations

DOCUMENTATION = r"""
name: tensorflow_environment
short_description: Environment variables of one process of a distributed TensorFlow job
version_added: 0.1.0
description:
  - Computes C(TF_CONFIG), which TensorFlow's cluster resolvers read. It has the whole cluster in JSON, and the
    replica's own type and index.
  - In a job of a v1 flavor, a process without any peer gets no C(TF_CONFIG).
extends_documentation_fragment: [dljob.operator.hook.environment]
"""

EXAMPLES = r"""
- name: Show the environment of the first parameter server
  ansible.builtin.debug:
    msg: "{{ cluster | dljob.operator.tensorflow_environment }}"
  vars:
    cluster:
      job: {name: digits, namespace: default, form: v1alpha1}
      replicas:
        Master: [{host: master-76no-0.tfjob-76no, port: 2222, rank: 0}]
        PS: [{host: ps-76no-0.tfjob-76no, port: 2222, rank: 1}]
      templates: {}
      total: 2
      task: {type: PS, index: 0, rank: 1}
"""

RETURN = r"""
_value:
  description: Variable name to value. Empty for the only process of a job of a v1 flavor.
  type: dict
  sample:
    TF_CONFIG: '{"cluster":{"master":["m:2222"],"ps":["p:2222"]},"task":{"type":"ps","index":0},"environment":"cloud"}'
"""

from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.tensorflow import hooks
from ansible_collections.dljob.operator.plugins.plugin_utils.hook_filter import HookFilter


class FilterModule(
    HookFilter, name="tensorflow_environment", needs=("job", "replicas", "total", "task"), hook=hooks.environment
):
    """Ansible's entry point."""
