"""The cache of one kind's objects, indexed by name, by UID and by the owner's UID."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from dljob_operator.engine.predicates import Change, owner_uid, uid_of
from dljob_operator.engine.transforms import Object

_Name = tuple[str, str]


class Store:
    """Holds transformed objects. It is safe to use from several threads; callers must not change what it returns."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_name: dict[_Name, Object] = {}
        self._by_uid: dict[str, Object] = {}
        self._by_owner: dict[str, dict[_Name, Object]] = {}

    def __len__(self) -> int:
        return len(self._by_name)

    def get(self, uid: str) -> Object | None:
        with self._lock:
            return self._by_uid.get(uid)

    def owned(self, uid: str) -> list[Object]:
        """Return the objects that the object `uid` controls, sorted by name."""
        with self._lock:
            owned = self._by_owner.get(uid, {})
            return [owned[name] for name in sorted(owned)]

    def owners(self) -> list[str]:
        """Return the UIDs of all controllers of the objects, sorted."""
        with self._lock:
            return sorted(self._by_owner)

    def all(self) -> list[Object]:
        """Return all objects, sorted by name."""
        with self._lock:
            return [self._by_name[name] for name in sorted(self._by_name)]

    def count(self, uid: str) -> int:
        """Return how many objects `uid` controls."""
        with self._lock:
            return len(self._by_owner.get(uid, ()))

    def put(self, obj: Object) -> list[Change]:
        """Store an added or changed object.

        If it has the name of a stored object with another UID, that one's deletion was missed and is the first change.
        """
        with self._lock:
            old = self._put(obj)
            if old is not None and uid_of(old) != uid_of(obj):
                return [Change(old, None), Change(None, obj)]
            return [Change(old, obj)]

    def remove(self, obj: Object) -> Change:
        """Remove a deleted object; `obj` is its last state."""
        with self._lock:
            known = self._by_name.get(_name(obj))
            # Another object may have this name already.
            if known is not None and uid_of(known) == uid_of(obj):
                self._drop(known)
            return Change(obj, None)

    def replace(self, objs: Iterable[Object]) -> list[Change]:
        """Replace all objects by `objs` and return the changes, deletions first."""
        with self._lock:
            listed = {_name(obj): obj for obj in objs}
            gone = [
                obj for name, obj in self._by_name.items() if name not in listed or uid_of(listed[name]) != uid_of(obj)
            ]
            changes = [Change(obj, None) for obj in gone]
            for obj in gone:
                self._drop(obj)
            changes += [Change(self._put(obj), obj) for obj in listed.values()]
            return changes

    def _put(self, obj: Object) -> Object | None:
        name = _name(obj)
        old = self._by_name.get(name)
        if old is not None:
            self._drop(old)
        self._by_name[name] = obj
        self._by_uid[uid_of(obj)] = obj
        owner = owner_uid(obj)
        if owner is not None:
            self._by_owner.setdefault(owner, {})[name] = obj
        return old

    def _drop(self, obj: Object) -> None:
        name = _name(obj)
        del self._by_name[name]
        del self._by_uid[uid_of(obj)]
        owner = owner_uid(obj)
        if owner is not None:
            siblings = self._by_owner[owner]
            del siblings[name]
            if not siblings:
                del self._by_owner[owner]


def _name(obj: Object) -> _Name:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
