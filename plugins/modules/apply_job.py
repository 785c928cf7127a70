#!/usr/bin/python
"""Documentation of the action plugin of the same name; there is no module to run."""

from __future__ import annotations

DOCUMENTATION = r"""
module: apply_job
short_description: Put a job given as play variables into the cluster
version_added: 0.1.0
description:
  - Takes the variables C(apiVersion), C(kind), C(metadata) and C(spec), which C(-e @job.yaml) sets, and applies them
    as one object, server-side, with the field manager C(dljob-operator).
  - No string of the job is evaluated as a template.
  - In check mode the API server validates the object and keeps nothing; a new object's uid is then made up.
options:
  watches_file:
    description: The watches.yaml that names the role of each kind.
    type: path
    required: true
  namespace:
    description: Namespace of a job that names none.
    type: str
    default: default
  kubeconfig:
    description: Path of a kubeconfig file. Without it E(KUBECONFIG) or the pod's own account is used.
    type: path
  context:
    description: Context in the kubeconfig file; its current one by default.
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
  description: The object as the API server holds it (in check mode, would hold it), without managed fields.
  type: dict
  returned: success
role:
  description: The role that reconciles its kind.
  type: str
  returned: success
  sample: dljob.operator.mxnet
"""
