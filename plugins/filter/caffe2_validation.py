"""Filter for the validation errors of a Caffe2 job."""

from __future__ import annotations

DOCUMENTATION = r"""
name: caffe2_validation
short_description: Validation errors in the rendezvous settings of a Caffe2 job
version_added: 0.1.0
description:
  - Checks C(spec.backendSpecs). The backend C(redis) needs C(redisHost), C(nfs) needs C(nfsPath), and C(none) is for a
    single replica. The default of C(backendType) is C(none) for a single replica and C(redis) for more.
positional: _input
options:
  _input:
    description: The cluster spec, as M(dljob.operator.reconcile) passes it to validation filters.
    type: dict
    required: true
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

from collections.abc import Callable
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.caffe2 import caffe2_validation
from ansible_collections.dljob.operator.plugins.plugin_utils.cluster_filter import cluster_filter


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return cluster_filter("caffe2_validation", ("spec", "total"), caffe2_validation)
