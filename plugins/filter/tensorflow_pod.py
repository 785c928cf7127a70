"""Filter for the defaults of a TensorFlow replica's pod."""

from __future__ import annotations

DOCUMENTATION = r"""
name: tensorflow_pod
short_description: Defaults of the pod template of one replica of a TensorFlow job
version_added: 0.2.0
description:
  - Computes the default parameter server of tf-operator's v1alpha1 jobs. It runs in a replica of the type C(PS) whose
    template has no container named C(tensorflow), or whose replica spec has C(IsDefaultPS) set to true.
  - All other replicas have no defaults, and neither has a job of the v1 layout.
extends_documentation_fragment: [dljob.operator.hook]
options:
  _input:
    description:
      - The cluster spec for one replica, as M(dljob.operator.reconcile) passes it to the hook C(pod). The filter reads
        C(tfImage) of its C(spec), by default C(tensorflow/tensorflow:1.3.0).
"""

EXAMPLES = r"""
- name: Show the command of the default parameter server
  ansible.builtin.debug:
    msg: "{{ (cluster | dljob.operator.tensorflow_pod).spec.containers[0].command }}"
  vars:
    cluster:
      job: {name: digits, namespace: default, runtime_id: 76no, form: v1alpha1}
      replicas:
        Master: [{host: master-76no-0, port: 2222, rank: 0}]
        PS: [{host: ps-76no-0, port: 2222, rank: 1}]
      templates:
        PS: {annotations: {}, containers: [], fields: {}}
      spec: {}
      task: {type: PS, index: 0, rank: 1}
"""

RETURN = r"""
_value:
  description: A partial PodTemplateSpec. The job's own template takes precedence. Empty without defaults.
  type: dict
"""

from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.tensorflow import hooks
from ansible_collections.dljob.operator.plugins.plugin_utils.hook_filter import HookFilter


class FilterModule(
    HookFilter, name="tensorflow_pod", needs=("job", "replicas", "templates", "spec", "task"), hook=hooks.pod_defaults
):
    """Ansible's entry point."""
