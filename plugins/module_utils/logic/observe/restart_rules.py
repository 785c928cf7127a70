"""Containers that the kubelet starts again although the pod's restartPolicy does not say so.

A rule of a container does that (``restartPolicyRules``, Kubernetes 1.35 or newer): it alone, or all of the pod.

After the action RestartAllContainers (1.36 or newer) the containers' last ends are gone from the status. In their place
the kubelet writes the exit code 137 and the reason :data:`ALL`, also of containers that it has stopped itself. Such an
end says nothing of the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping

ALL = "RestartingAllContainers"
"""The reason of a container that waits, or has ended, because the kubelet restarts all of the pod."""
CONDITION = "AllContainersRestarting"
"""The condition of a pod that has a rule with that action. It is True while the kubelet stops the containers."""
_RESTARTS = ("Restart", "RestartAllContainers")

Resource = Mapping[str, Any]


def applies(own: Resource, ended: Resource | None, status: Resource) -> bool:
    """Whether the kubelet answers the end ``ended`` of the container ``own`` with a restart, or has done so.

    ``own`` is the container of the pod's spec, {} where it is unknown. A pod that has ended restarts nothing.
    """
    if not ended:
        return False
    return _is_restarting_all(status) or _matches(own, ended)


def last_end(own: Resource, container: Resource, status: Resource) -> Resource | None:
    """The last end of the program in the status ``container``, ``None`` without one.

    An exit with 0 that a restart by a rule follows is no end: the program is to run again, or the kubelet stopped it.
    """
    now = real((container.get("state") or {}).get("terminated"))
    if now and not (_is_zero(now) and applies(own, now, status)):
        return now
    before = real((container.get("lastState") or {}).get("terminated"))
    if before and _is_zero(before) and (_may_restart_all(status) or _matches(own, before)):
        return None
    return before


def real(ended: Resource | None) -> Resource | None:
    """``ended``, a ``terminated`` state, where it is an end of the program; otherwise ``None``."""
    return None if not ended or ended.get("reason") == ALL else ended


def has_restarted_all(status: Resource) -> bool:
    """Whether the kubelet has restarted all containers of a pod that ran. Init containers make it Pending again."""
    lasts = (one.get("lastState") or {} for one in status.get("containerStatuses") or ())
    return any((last.get("terminated") or {}).get("reason") == ALL for last in lasts)


def _is_zero(ended: Resource) -> bool:
    return not ended.get("exitCode")


def _is_restarting_all(status: Resource) -> bool:
    return any((one.get("type"), one.get("status")) == (CONDITION, "True") for one in status.get("conditions") or ())


def _may_restart_all(status: Resource) -> bool:
    return any(one.get("type") == CONDITION for one in status.get("conditions") or ())


def _matches(own: Resource, ended: Resource) -> bool:
    """Whether the first rule for this exit code restarts the container. An unknown action leaves it to the policy."""
    code = int(ended.get("exitCode") or 0)
    for rule in own.get("restartPolicyRules") or ():
        codes = as_mapping(rule.get("exitCodes"))
        is_listed = code in (codes.get("values") or ())
        if codes.get("operator") == ("In" if is_listed else "NotIn"):
            return rule.get("action") in _RESTARTS
    return False
