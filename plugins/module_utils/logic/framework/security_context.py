"""The security contexts of what the operator adds to a job: they are those of the job's own template.

A policy that admits the template, such as Pod Security's level restricted, then admits the addition. Nothing else is
added: OpenShift refuses a ``seccompProfile`` for accounts with the SCC anyuid. What the template permits beyond the
default, such as ``privileged``, is left out.

The image of an added container may run as root. Where the template forbids root and names no user, the container gets
the user id of the setting, since the kubelet would refuse it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_list, as_mapping, maps
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import NON_ROOT_USER, SETTING_NON_ROOT_USER

Contexts = Mapping[str, Any]
"""Of a template: ``pod`` and ``container``, the security contexts, and ``image``, the container's."""

HARDENED: Mapping[str, Any] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""For a program of the operator's own that needs no privilege, not even to read the files of another user."""
_USER = ("runAsNonRoot", "runAsUser", "runAsGroup")
_POD = (
    *_USER,
    *("supplementalGroups", "supplementalGroupsPolicy", "fsGroup", "fsGroupChangePolicy"),
    *("seLinuxOptions", "seLinuxChangePolicy"),
)
_CONTAINER = (*_USER, "seLinuxOptions")


def of_template(template: Mapping[str, Any], names: Sequence[str], main: str) -> Contexts:
    """The contexts of a template, which may be malformed, and of its container ``main`` or else its first one; empty
    where it has none. ``names`` are those of the user's containers: the operator may have added one."""
    spec = as_mapping(template.get("spec"))
    containers = maps(spec.get("containers"))
    if not spec.get("securityContext") and not any(one.get("securityContext") for one in containers):
        return {}
    name = main if main in names else next(iter(names), None)
    container: Mapping[str, Any] = next((one for one in containers if one.get("name") == name), {})
    pod, own = as_mapping(spec.get("securityContext")), as_mapping(container.get("securityContext"))
    return {"pod": dict(pod), "container": dict(own), "image": str(container.get("image") or "")} if pod or own else {}


def for_pod(contexts: Contexts) -> dict[str, Any]:
    """The security context of a pod that the operator creates beside those of the template."""
    given = as_mapping(contexts.get("pod"))
    return {**_taken(given, _POD), **_seccomp(given)}


def for_container(
    contexts: Contexts, image: str, settings: Mapping[str, Any], least: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The security context of an added container of that ``image``, in a pod with the template's or :func:`for_pod`.

    ``least`` is what it has besides, whatever the template says.
    """
    given = as_mapping(contexts.get("container"))
    dropped = as_list(as_mapping(given.get("capabilities")).get("drop"))
    made = {
        **_taken(given, _CONTAINER),
        **_seccomp(given),
        **({"allowPrivilegeEscalation": False} if given.get("allowPrivilegeEscalation") is False else {}),
        **({"capabilities": {"drop": dropped}} if dropped else {}),
        **(least or {}),
    }
    if _effective(contexts, "runAsNonRoot") is True and _effective(contexts, "runAsUser") is None:
        user = settings.get(SETTING_NON_ROOT_USER, NON_ROOT_USER)
        if user is not None and image != contexts.get("image"):
            made["runAsUser"] = user
    return made


def _effective(contexts: Contexts, field: str) -> Any:
    """The value that Kubernetes uses for the container: its own, or else the pod's."""
    own = as_mapping(contexts.get("container")).get(field)
    return as_mapping(contexts.get("pod")).get(field) if own is None else own


def _taken(given: Mapping[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    return {name: given[name] for name in fields if given.get(name) is not None}


def _seccomp(given: Mapping[str, Any]) -> dict[str, Any]:
    profile = given.get("seccompProfile")
    return {} if profile is None or as_mapping(profile).get("type") == "Unconfined" else {"seccompProfile": profile}
