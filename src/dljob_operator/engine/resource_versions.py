"""Which versions the watches have shown, so that no run starts behind an earlier one's writes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable

Written = tuple[str, str | None]
"""A write: the object's UID and the version that it has since; without a version it was deleted."""

_GONE_KEPT = 20_000


class ResourceVersionTracker:
    """Notes what watches show, and lets a thread wait until they have shown given writes."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._versions: dict[str, int] = {}
        self._leaving: OrderedDict[str, None] = OrderedDict()

    def note(self, uid: str, version: str, *, leaving: bool, gone: bool) -> None:
        """Take note of an object's version; `leaving` that it is being deleted, `gone` that it has been."""
        with self._changed:
            if leaving or gone:
                self._leaving[uid] = None
                # Objects that are gone are remembered for a while only: who waits for them does so right
                # away.
                while len(self._leaving) > _GONE_KEPT:
                    self._leaving.popitem(last=False)
            if gone:
                self._versions.pop(uid, None)
            else:
                self._versions[uid] = number(version)
            self._changed.notify_all()

    def wait_for(self, writes: Iterable[Written], timeout: float) -> bool:
        """Return whether all of `writes` have been shown, after at most `timeout` seconds."""
        wanted = list(writes)
        with self._changed:
            return self._changed.wait_for(lambda: all(map(self._has_seen, wanted)), timeout)

    def _has_seen(self, written: Written) -> bool:
        uid, version = written
        if uid in self._leaving:
            # Whatever was written, nothing later than the deletion is to come, unless it lingers in its
            # grace period.
            return version is None or uid not in self._versions or self._versions[uid] >= number(version)
        return version is not None and self._versions.get(uid, -1) >= number(version)


def number(version: str) -> int:
    """Resource versions of one object grow; Kubernetes 1.35 made that a promise for all of its own."""
    return int(version) if version.isdigit() else 0
