"""What is wrong with a PyTorch job, as a filter."""

from __future__ import annotations

DOCUMENTATION = r"""
name: pytorch_validation
short_description: Faults of how the processes of a PyTorch job are to be started
version_added: 0.1.0
description:
  - Checks C(spec.nprocPerNode) and C(spec.elasticPolicy), as the schema does where it is this operator's. The latter
    needs workers, no more of them than C(maxReplicas), and C(minReplicas) not above that.
positional: _input
options:
  _input:
    description: The cluster, as M(dljob.operator.reconcile) hands it to a framework's validation filter.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Refuse a job whose workers torchrun would not all let in
  ansible.builtin.assert:
    that: cluster | dljob.operator.pytorch_validation == []
  vars:
    cluster:
      replicas:
        Worker: [{host: digits-worker-0, port: 23456, rank: 0}]
      spec: {elasticPolicy: {minReplicas: 1, maxReplicas: 3}}
"""

RETURN = r"""
_value:
  description: One sentence per fault, with the field and the fix. Empty for a good job.
  type: list
  elements: str
"""

from collections.abc import Callable
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.environment.pytorch import pytorch_validation
from ansible_collections.dljob.operator.plugins.plugin_utils.cluster_filter import cluster_filter


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return cluster_filter(
            "pytorch_validation", ("replicas", "spec"), lambda cluster: list(pytorch_validation(cluster))
        )
