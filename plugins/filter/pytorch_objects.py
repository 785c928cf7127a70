"""Filter for the objects that a PyTorch job owns besides its pods."""

from __future__ import annotations

DOCUMENTATION = r"""
name: pytorch_objects
short_description: Manifests of the objects that a PyTorch job owns besides its pods
version_added: 0.2.0
description:
  - Computes the HorizontalPodAutoscaler of autoscaling/v2 that changes the number of workers, where
    C(spec.elasticPolicy.metrics) has metrics. It has the job's name and the bounds C(minReplicas) and C(maxReplicas)
    of C(spec.elasticPolicy), and exists while the job is neither suspended nor finished.
  - Training-operator 1.9 creates the same object.
extends_documentation_fragment: [dljob.operator.hook]
options:
  _input:
    description:
      - The cluster spec of a job, as M(dljob.operator.reconcile) passes it to the hook C(objects). The filter reads
        C(elasticPolicy) of its C(spec).
"""

EXAMPLES = r"""
- name: Show the autoscaler
  ansible.builtin.debug:
    msg: "{{ cluster | dljob.operator.pytorch_objects }}"
  vars:
    cluster:
      job: {name: digits, namespace: default, uid: 0b5c, kind: PyTorchJob, api_version: kubeflow.org/v1}
      replicas:
        Worker: [{host: digits-worker-0, port: 23456, rank: 0}]
      spec:
        elasticPolicy:
          minReplicas: 1
          maxReplicas: 3
          metrics:
            - type: Resource
              resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}
"""

RETURN = r"""
_value:
  description:
    - The manifest of the HorizontalPodAutoscaler, with its name and the annotation C(dljob.operator/lifetime), as the
      only element; an empty list where the job has no metrics. The operator adds namespace, owner, its labels and a
      hash.
  type: list
  elements: dict
"""

from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.pytorch import hooks
from ansible_collections.dljob.operator.plugins.plugin_utils.hook_filter import HookFilter


class FilterModule(HookFilter, name="pytorch_objects", needs=("job", "replicas", "spec"), hook=hooks.objects):
    """Ansible's entry point."""
