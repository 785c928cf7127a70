"""Filter for the validation errors of a TensorFlow job."""

from __future__ import annotations

DOCUMENTATION = r"""
name: tensorflow_validation
short_description: Validation errors in the TensorBoard settings of a TensorFlow job
version_added: 0.2.0
description:
  - Checks C(spec.tensorboard), like the schema of this operator's CRD.
extends_documentation_fragment: [dljob.operator.hook.validation]
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

from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.tensorflow import hooks
from ansible_collections.dljob.operator.plugins.plugin_utils.hook_filter import HookFilter


class FilterModule(HookFilter, name="tensorflow_validation", needs=("spec",), hook=hooks.validate):
    """Ansible's entry point."""
