"""Track the resource versions that the cache has observed, so that no run starts before it includes earlier writes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable

Written = tuple[str, str | None]
"""A write: the UID of the object and its new resource version, None if it was deleted."""

_GONE_KEPT = 5_000


class ResourceVersionTracker:
    """Records observed resource versions and lets a thread wait until given writes have been observed."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._versions: dict[str, int] = {}
        self._leaving: OrderedDict[str, None] = OrderedDict()

    def note(self, uid: str, version: str, *, leaving: bool, gone: bool) -> None:
        """Record the version of an object. `leaving`: it is being deleted; `gone`: it was deleted."""
        with self._changed:
            if leaving or gone:
                self._leaving[uid] = None
                # Deleted objects are kept for a while only, because callers wait for them right after the
                # write.
                while len(self._leaving) > _GONE_KEPT:
                    self._leaving.popitem(last=False)
            if gone:
                self._versions.pop(uid, None)
            else:
                self._versions[uid] = number(version)
            self._changed.notify_all()

    def wait_for(self, writes: Iterable[Written], timeout: float) -> bool:
        """Wait at most `timeout` seconds; return whether all of `writes` have been observed."""
        wanted = list(writes)
        with self._changed:
            return self._changed.wait_for(lambda: all(map(self._has_seen, wanted)), timeout)

    def _has_seen(self, written: Written) -> bool:
        uid, version = written
        if uid in self._leaving:
            # No event follows the deletion of an object, unless the object is still in its grace
            # period.
            return version is None or uid not in self._versions or self._versions[uid] >= number(version)
        return version is not None and self._versions.get(uid, -1) >= number(version)


def number(version: str) -> int:
    """Return a resource version as a number. Those of one object increase, which Kubernetes 1.35 guarantees."""
    return int(version) if version.isdigit() else 0
