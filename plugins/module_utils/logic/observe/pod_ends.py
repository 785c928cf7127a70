"""How a pod has ended: well, with a failure, or not for good."""

from __future__ import annotations

from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import PodState


def has_succeeded(pod: PodState) -> bool:
    """Whether the framework's container exited with 0. A sidecar that still runs does not matter.

    The exit code of a pod that is being deleted or evicted does not count: a terminated program may exit with 0.
    """
    if pod.deleting:
        return False
    return pod.phase == "Succeeded" or (pod.ended is not None and pod.ended.code == 0 and not pod.disrupted)


def is_done(pod: PodState) -> bool:
    """Whether the replica has succeeded and will not run again."""
    if not has_succeeded(pod):
        return False
    return pod.phase in ("Succeeded", "Failed") or (pod.terminated and pod.restart_policy != c.RESTART_ALWAYS)


def has_failed(pod: PodState) -> bool:
    """Whether the pod has failed and will not run again: its phase is Failed, or its container failed under Never.

    A pod whose framework container has succeeded has not failed, even if a sidecar has. Nor has one whose container the
    kubelet starts again by a rule.
    """
    if pod.phase == "Failed":
        return not has_succeeded(pod)
    if pod.restarted_by_rule:
        return False
    return pod.terminated and pod.restart_policy == c.RESTART_NEVER and pod.ended is not None and pod.ended.code != 0
