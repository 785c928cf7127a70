#!/usr/bin/python
"""Documentation of the action plugin of the same name; there is no module to run."""

from __future__ import annotations

DOCUMENTATION = r"""
module: apply_job
short_description: Apply the jobs of a manifest
version_added: 0.1.0
description:
  - Applies the jobs of the file O(manifest), server-side, with the field manager C(dljob-operator). It reads the file
    as kubectl does. Objects of other kinds cause a warning each and are not applied.
  - Without O(manifest) it takes one job from the variables C(apiVersion), C(kind), C(metadata) and C(spec), which
    C(-e @job.yaml) sets. Ansible has read that file then, and takes a plain C(2024-01-15) for a date, which is an error
    here, and C(12:30) for the number 750, which cannot be noticed.
  - Ansible does not evaluate the job's strings as templates.
  - In check mode the API server validates the object and stores nothing; a new object then has a random uid.
options:
  manifest:
    description: Path of a YAML file with one or more documents.
    type: path
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
    description: Each object before and after.
    support: full
author: dljob-operator developers (@dljob)
"""

EXAMPLES = r"""
- name: Apply the jobs of the file that the command line names
  dljob.operator.apply_job:
    watches_file: "{{ playbook_dir }}/../watches.yaml"
    manifest: "{{ manifest }}"
  register: applied
"""

RETURN = r"""
jobs:
  description: The jobs, in the order of the file.
  type: list
  elements: dict
  returned: success
  contains:
    resource:
      description: The object after the request (in check mode, as it would be), without managed fields.
      type: dict
      returned: success
    role:
      description: The role that reconciles its kind.
      type: str
      returned: success
      sample: dljob.operator.mxnet
resource:
  description: The RV(jobs[].resource) of the only job.
  type: dict
  returned: when there is one job
role:
  description: The RV(jobs[].role) of the only job.
  type: str
  returned: when there is one job
"""
