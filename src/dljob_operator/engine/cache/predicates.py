"""Decide which changes of cached objects requeue a job: pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.controller_reference import controller_of
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import OWN_PREFIX

from dljob_operator.engine.cache.transforms import Object

RECONCILE_PERIOD_ANNOTATION = "ansible.sdk.operatorframework.io/reconcile-period"
REQUEUE_ANNOTATION = f"{OWN_PREFIX}requeued-at"
"""Its change, a time and a number, makes ansible-operator reconcile the job. Only the operator writes it."""


@dataclass(frozen=True)
class Change:
    """An object before and after a change. `old` is None for a new object, `new` for a deleted one."""

    old: Object | None
    new: Object | None

    @property
    def obj(self) -> Object:
        """The current state of the object, or its last state if it was deleted."""
        found = self.new if self.new is not None else self.old
        assert found is not None
        return found


def custom_predicate(change: Change) -> bool:
    """Whether a change of a custom resource is more than one of its status or of the requeue annotation."""
    if change.old is None or change.new is None:
        return True
    return _intent(change.old) != _intent(change.new)


def owned_predicate(change: Change) -> bool:
    """Whether an owned object changed in any field that the cache keeps."""
    if change.old is None or change.new is None:
        return True
    return _without_version(change.old) != _without_version(change.new)


def owner_uid(obj: Object) -> str | None:
    """Return the UID of the object's controller, or None if it has none."""
    reference = controller_of(obj)
    return None if reference is None else str(reference["uid"])


def uid_of(obj: Object) -> str:
    uid: str = obj["metadata"]["uid"]
    return uid


def namespace_of(obj: Object) -> str:
    """Return the namespace of an object, "" for a cluster-scoped one."""
    return str(obj["metadata"].get("namespace") or "")


def version_of(obj: Object) -> str:
    return str(obj["metadata"].get("resourceVersion", ""))


def is_leaving(obj: Object) -> bool:
    """Whether the object has a deletionTimestamp, so waits for its finalizers or its grace period."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def object_fields(obj: Object) -> dict[str, str | None]:
    """Return the log fields that identify an object."""
    metadata = obj["metadata"]
    return {
        "kind": obj.get("kind"),
        "api_version": obj.get("apiVersion"),
        "namespace": metadata.get("namespace"),
        "name": metadata.get("name"),
    }


def _intent(obj: Object) -> tuple[Any, ...]:
    metadata: Mapping[str, Any] = obj["metadata"]
    annotations = {k: v for k, v in (metadata.get("annotations") or {}).items() if k != REQUEUE_ANNOTATION}
    fields = (metadata.get(key) or None for key in ("uid", "generation", "labels", "deletionTimestamp", "finalizers"))
    return *fields, annotations


def _without_version(obj: Object) -> Object:
    metadata = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
    return {**obj, "metadata": metadata}
