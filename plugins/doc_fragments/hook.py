"""The input of the filters that are hooks of a framework."""

from __future__ import annotations


class ModuleDocFragment:
    """Ansible's entry point."""

    # of a filter that describes its input itself
    DOCUMENTATION = r"""
positional: _input
options:
  _input:
    type: dict
    required: true
"""

    ENVIRONMENT = r"""
positional: _input
options:
  _input:
    description: The cluster spec for one replica, as M(dljob.operator.reconcile) passes it to environment filters.
    type: dict
    required: true
"""

    VALIDATION = r"""
positional: _input
options:
  _input:
    description: The cluster spec of a job, as M(dljob.operator.reconcile) passes it to the hook C(validate).
    type: dict
    required: true
"""
