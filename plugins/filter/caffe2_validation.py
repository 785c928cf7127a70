"""Filter for the validation errors of a Caffe2 job."""

from __future__ import annotations

DOCUMENTATION = r"""
name: caffe2_validation
short_description: Validation errors in the rendezvous settings of a Caffe2 job
version_added: 0.1.0
description:
  - Checks C(spec.backendSpecs). The backend C(redis) needs C(redisHost), C(nfs) needs C(nfsPath), and C(none) is for a
    single replica. The default of C(backendType) is C(none) for a single replica and C(redis) for more.
extends_documentation_fragment: [dljob.operator.hook.validation]
"""

EXAMPLES = r"""
- name: Reject a job whose workers have no rendezvous
  ansible.builtin.assert:
    that: cluster | dljob.operator.caffe2_validation == []
  vars:
    cluster:
      spec: {backendSpecs: {backendType: nfs, nfsPath: /shared/digits}}
      total: 2
"""

RETURN = r"""
_value:
  description: One sentence per error, with the field and the fix. Empty for a valid job.
  type: list
  elements: str
"""

from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.caffe2 import caffe2_validation
from ansible_collections.dljob.operator.plugins.plugin_utils.hook_filter import HookFilter


class FilterModule(HookFilter, name="caffe2_validation", needs=("spec", "total"), hook=caffe2_validation):
    """Ansible's entry point."""
