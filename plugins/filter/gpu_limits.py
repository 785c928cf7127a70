"""The accelerators that the containers of a pod ask for, as a filter."""

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_limits
short_description: Accelerators that a pod's containers ask for, under the cluster's names
version_added: 0.1.0
description:
  - Collects, from limits and requests of all containers and init containers, the resources that have a domain in their
    name, such as C(nvidia.com/gpu). Cpu, memory and the like are left out, and so is a count of 0.
  - A request without a limit counts as one. Devices of a plugin cannot be overcommitted.
  - C(alpha.kubernetes.io/nvidia-gpu), a name of Kubernetes before 1.10, becomes C(nvidia.com/gpu) where the nodes
    advertise only the latter. What M(dljob.operator.reconcile) writes into pods is computed by the same function.
positional: _input
options:
  _input:
    description: A pod, a pod template, or the spec of one.
    type: dict
    required: true
  advertised:
    description: Resources that the cluster's nodes advertise. Without them no name is changed.
    type: list
    elements: str
"""

EXAMPLES = r"""
- name: How many GPUs do the workers of this job want, by container
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
  description: Container name to resource name to count, the latter as it was written. Empty where none is asked for.
  type: dict
  sample: {tensorflow: {nvidia.com/gpu: 1}}
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.dljob.operator.plugins.module_utils.logic.accelerators.limits import gpu_limits


def _checked(pod: Any, advertised: Iterable[str] | None = None) -> dict[str, dict[str, Any]]:
    spec = pod.get("spec", pod) if isinstance(pod, Mapping) else None
    if not (isinstance(spec, Mapping) and isinstance(spec.get("containers"), (list, tuple))):
        raise AnsibleFilterError("gpu_limits: give a pod, a pod template or the spec of one: there are no containers")
    if advertised is not None and (isinstance(advertised, str) or not isinstance(advertised, Iterable)):
        raise AnsibleFilterError(f"gpu_limits: advertised must be a list of resource names, not {advertised!r}")
    return gpu_limits(spec, None if advertised is None else frozenset(advertised))


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"gpu_limits": _checked}
