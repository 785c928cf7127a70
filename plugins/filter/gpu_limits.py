"""Filter for the accelerators that the containers of a pod request."""

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_limits
short_description: Accelerators that a pod's containers request, under the cluster's resource names
version_added: 0.1.0
description:
  - Collects, from limits and requests of all containers and init containers, the resources that have a domain in their
    name, such as C(nvidia.com/gpu). CPU, memory and counts of 0 are left out.
  - A request without a limit counts as a limit, because devices cannot be overcommitted.
  - C(alpha.kubernetes.io/nvidia-gpu), a name of Kubernetes before 1.10, becomes C(nvidia.com/gpu) where the nodes
    advertise only the latter. M(dljob.operator.reconcile) uses the same function for the pods that it creates.
positional: _input
options:
  _input:
    description: A pod, a pod template, or the spec of one.
    type: dict
    required: true
  advertised:
    description: Resources that the cluster's nodes advertise. Without it, no name is changed.
    type: list
    elements: str
"""

EXAMPLES = r"""
- name: Show the number of GPUs of a worker, by container
  ansible.builtin.debug:
    msg: "{{ template | dljob.operator.gpu_limits(['nvidia.com/gpu']) }}"
  vars:
    template:
      spec:
        containers:
          - name: tensorflow
            image: tensorflow/tensorflow:1.3.0-gpu
            resources:
              limits: {alpha.kubernetes.io/nvidia-gpu: 1, memory: 4Gi}
"""

RETURN = r"""
_value:
  description: Container name to resource name to count, as in the manifest. Empty without accelerators.
  type: dict
  sample: {tensorflow: {nvidia.com/gpu: 1}}
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.accelerator_limits import gpu_limits


def _checked(pod: Any, advertised: Iterable[str] | None = None) -> dict[str, dict[str, Any]]:
    spec = pod.get("spec", pod) if isinstance(pod, Mapping) else None
    if not (isinstance(spec, Mapping) and isinstance(spec.get("containers"), (list, tuple))):
        raise AnsibleFilterError(
            "gpu_limits: the input must be a pod, a pod template or a pod spec: it has no containers"
        )
    if advertised is not None and (isinstance(advertised, str) or not isinstance(advertised, Iterable)):
        raise AnsibleFilterError(f"gpu_limits: advertised must be a list of resource names, not {advertised!r}")
    return gpu_limits(spec, None if advertised is None else frozenset(advertised))


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"gpu_limits": _checked}
