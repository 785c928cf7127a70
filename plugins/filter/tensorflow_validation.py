"""Filter for the validation errors of a TensorFlow job."""

from __future__ import annotations

DOCUMENTATION = r"""
name: tensorflow_validation
short_description: Validation errors in the TensorBoard settings of a TensorFlow job
version_added: 0.2.0
description:
  - Checks C(spec.tensorboard), like the schema of this operator's CRD.
positional: _input
options:
  _input:
    description: The cluster spec, as M(dljob.operator.reconcile) passes it to the hook C(validate).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Reject a TensorBoard without a directory
  ansible.builtin.assert:
    that: cluster | dljob.operator.tensorflow_validation == []
  vars:
    cluster:
      spec: {tensorboard: {logDir: /logs}}
"""

RETURN = r"""
_value:
  description: One sentence per error, with the field and the fix. Empty for a valid job.
  type: list
  elements: str
"""

from collections.abc import Callable
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.tensorflow import hooks
from ansible_collections.dljob.operator.plugins.plugin_utils.cluster_filter import cluster_filter


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return cluster_filter("tensorflow_validation", ("spec",), hooks.validate)
