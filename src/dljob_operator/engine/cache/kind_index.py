"""The watched kinds of which a cache has an object, by its UID."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

Kind = TypeVar("Kind")


class KindIndex(Generic[Kind]):
    """Finds the kinds of an object without a look into the cache of each: an event of a pod asks for its job's.

    It may be several kinds, since two watch entries may select the same object. It is safe to use from several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kinds: dict[str, tuple[Kind, ...]] = {}

    def __len__(self) -> int:
        return len(self._kinds)

    def of(self, uid: str) -> tuple[Kind, ...]:
        return self._kinds.get(uid, ())

    def add(self, uid: str, kind: Kind) -> None:
        with self._lock:
            kinds = self._kinds.get(uid, ())
            if not any(one is kind for one in kinds):
                self._kinds[uid] = (*kinds, kind)

    def discard(self, uid: str, kind: Kind) -> None:
        with self._lock:
            left = tuple(one for one in self._kinds.get(uid, ()) if one is not kind)
            if left:
                self._kinds[uid] = left
            else:
                self._kinds.pop(uid, None)
