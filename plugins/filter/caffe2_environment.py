"""Filter for the environment of a Caffe2 process."""

from __future__ import annotations

DOCUMENTATION = r"""
name: caffe2_environment
short_description: Environment variables of one worker of a Caffe2 job
version_added: 0.1.0
description:
  - Computes what a Caffe2 training program needs to join its job.
  - C(SHARD_ID), C(NUM_SHARDS) and C(RUN_ID) are arguments for Caffe2, C(CAFFE2_CONFIG) has the addresses of all workers
    in JSON, and C(REDIS_HOST) and C(REDIS_PORT), or C(NFS_PATH), are for the rendezvous of the workers.
  - All of them are always set. C(REDIS_HOST) or C(NFS_PATH) is empty where the job does not use it.
extends_documentation_fragment: [dljob.operator.hook.environment]
"""

EXAMPLES = r"""
- name: Show the environment of the second worker
  ansible.builtin.debug:
    msg: "{{ cluster | dljob.operator.caffe2_environment }}"
  vars:
    cluster:
      job: {name: digits, namespace: default, runtime_id: "1529307087"}
      replicas:
        Worker: [{host: digits-worker-0, port: 2222, rank: 0}, {host: digits-worker-1, port: 2222, rank: 1}]
      spec: {backendSpecs: {backendType: redis, redisHost: redis-service, redisPort: 6379}}
      total: 2
      task: {type: Worker, index: 1, rank: 1}
"""

RETURN = r"""
_value:
  description: Variable name to value.
  type: dict
  sample: {SHARD_ID: "1", NUM_SHARDS: "2", REDIS_HOST: redis-service}
"""

from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.caffe2 import caffe2_environment
from ansible_collections.dljob.operator.plugins.plugin_utils.hook_filter import HookFilter


class FilterModule(
    HookFilter, name="caffe2_environment", needs=("job", "replicas", "spec", "total", "task"), hook=caffe2_environment
):
    """Ansible's entry point."""
