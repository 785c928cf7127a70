"""Filter for the objects that a TensorFlow job owns besides its pods."""

from __future__ import annotations

DOCUMENTATION = r"""
name: tensorflow_objects
short_description: Manifests of the objects that a TensorFlow job owns besides its pods
version_added: 0.2.0
description:
  - Computes the ConfigMap with the program of the default parameter server (see
    P(dljob.operator.tensorflow_pod#filter)), where a replica runs it.
  - Computes the Deployment, the Service and the OpenShift Route of TensorBoard, where C(spec.tensorboard) requests it.
    They outlive the training.
extends_documentation_fragment: [dljob.operator.hook]
options:
  _input:
    description:
      - The cluster spec of a job, as M(dljob.operator.reconcile) passes it to the hook C(objects). The filter reads
        C(tensorboard) and C(tfImage) of its C(spec), and the programs in its C(files).
"""

EXAMPLES = r"""
- name: Show the objects of TensorBoard
  ansible.builtin.debug:
    msg: "{{ cluster | dljob.operator.tensorflow_objects }}"
  vars:
    cluster:
      job: {name: digits, namespace: default, uid: 0b5c, runtime_id: 76no, form: v1alpha1}
      replicas:
        Master: [{host: master-76no-0, port: 2222, rank: 0}]
      templates:
        Master: {annotations: {}, containers: [tensorflow], fields: {}}
      spec: {tensorboard: {logDir: /logs}}
      files: {tensorboard.py: "print('TensorBoard')"}
"""

RETURN = r"""
_value:
  description:
    - One manifest per object, in the order of creation, with name, own labels and the annotation
      C(dljob.operator/lifetime). The operator adds namespace, owner, its labels and a hash.
  type: list
  elements: dict
"""

from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.tensorflow import hooks
from ansible_collections.dljob.operator.plugins.plugin_utils.hook_filter import HookFilter


class FilterModule(
    HookFilter, name="tensorflow_objects", needs=("job", "replicas", "templates", "spec", "files"), hook=hooks.objects
):
    """Ansible's entry point."""
