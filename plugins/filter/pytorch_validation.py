"""Filter for the validation errors of a PyTorch job."""

from __future__ import annotations

DOCUMENTATION = r"""
name: pytorch_validation
short_description: Validation errors in the torchrun settings of a PyTorch job
version_added: 0.1.0
description:
  - Checks C(spec.nprocPerNode) and C(spec.elasticPolicy), like the schema of this operator's CRD. C(elasticPolicy)
    needs workers, at most C(maxReplicas) of them, and C(minReplicas) must not exceed C(maxReplicas).
extends_documentation_fragment: [dljob.operator.hook.validation]
"""

EXAMPLES = r"""
- name: Reject a job with more workers than maxReplicas
  ansible.builtin.assert:
    that: cluster | dljob.operator.pytorch_validation == []
  vars:
    cluster:
      job: {kind: PyTorchJob}
      replicas:
        Worker: [{host: digits-worker-0, port: 23456, rank: 0}]
      spec: {elasticPolicy: {minReplicas: 1, maxReplicas: 3}}
"""

RETURN = r"""
_value:
  description: One sentence per error, with the field and the fix. Empty for a valid job.
  type: list
  elements: str
"""

from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.pytorch import hooks
from ansible_collections.dljob.operator.plugins.plugin_utils.hook_filter import HookFilter


class FilterModule(HookFilter, name="pytorch_validation", needs=("job", "replicas", "spec"), hook=hooks.validate):
    """Ansible's entry point."""
