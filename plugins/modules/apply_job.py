#!/usr/bin/python
"""Documentation of the action plugin of the same name; there is no module to run."""

from __future__ import annotations

DOCUMENTATION = r"""
module: apply_job
short_description: Apply a job that is given as play variables
version_added: 0.1.0
description:
  - Takes the variables C(apiVersion), C(kind), C(metadata) and C(spec), which C(-e @job.yaml) sets, and applies them
    as one object, server-side, with the field manager C(dljob-operator).
  - Ansible does not evaluate the job's strings as templates.
  - In check mode the API server validates the object and stores nothing; a new object then has a random uid.
options:
  watches_file:
    description: Path of the watches.yaml that names the role of each kind.
    type: path
    required: true
  namespace:
    description: Namespace of a job without C(metadata.namespace).
    type: str
    default: default
  kubeconfig:
    description: Path of a kubeconfig file. The default is E(KUBECONFIG), or in a pod its service account.
    type: path
  context:
    description: Context in the kubeconfig file. The default is its current context.
    type: str
attributes:
  check_mode:
    description: Server-side dry run.
    support: full
  diff_mode:
    description: The object before and after.
    support: full
author: dljob-operator developers (@dljob)
"""

EXAMPLES = r"""
- name: Apply the job that the command line names
  dljob.operator.apply_job:
    watches_file: "{{ playbook_dir }}/../watches.yaml"
  register: applied
"""

RETURN = r"""
resource:
  description: The object after the request (in check mode, as it would be), without managed fields.
  type: dict
  returned: success
role:
  description: The role that reconciles its kind.
  type: str
  returned: success
  sample: dljob.operator.mxnet
"""
