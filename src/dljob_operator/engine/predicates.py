"""Which changes are a reason to reconcile, and whose: pure functions over objects as the cache holds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dljob_operator.engine.transforms import Object

RECONCILE_PERIOD_ANNOTATION = "ansible.sdk.operatorframework.io/reconcile-period"


@dataclass(frozen=True)
class Change:
    """An object before and after: without `old` it is new, without `new` it is gone."""

    old: Object | None
    new: Object | None

    @property
    def obj(self) -> Object:
        """The object as it is, or as it last was."""
        found = self.new if self.new is not None else self.old
        assert found is not None
        return found


def custom_predicate(change: Change) -> bool:
    """Whether a custom resource's change was made by somebody else: a write of its status never counts."""
    if change.old is None or change.new is None:
        return True
    return _intent(change.old) != _intent(change.new)


def owned_predicate(change: Change) -> bool:
    """Whether an owned object's change shows in anything that is kept of it."""
    if change.old is None or change.new is None:
        return True
    return _without_version(change.old) != _without_version(change.new)


def owner_uid(obj: Object) -> str | None:
    """Return the UID of the object's controller, or None where nobody controls it."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            uid: str = reference["uid"]
            return uid
    return None


def uid_of(obj: Object) -> str:
    uid: str = obj["metadata"]["uid"]
    return uid


def version_of(obj: Object) -> str:
    return str(obj["metadata"].get("resourceVersion", ""))


def is_leaving(obj: Object) -> bool:
    """Whether the object has been deleted and waits for its finalizers or its grace period."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def title(obj: Object) -> str:
    """Return an object's name as logs show it: "default/linear"."""
    metadata = obj["metadata"]
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))


def _intent(obj: Object) -> tuple[Any, ...]:
    metadata: Mapping[str, Any] = obj["metadata"]
    return tuple(
        metadata.get(key) or None
        for key in ("uid", "generation", "labels", "annotations", "deletionTimestamp", "finalizers")
    )


def _without_version(obj: Object) -> Object:
    metadata = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
    return {**obj, "metadata": metadata}
