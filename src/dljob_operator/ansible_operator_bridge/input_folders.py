"""Delete the input directories of deleted jobs.

ansible-operator writes one for each name of a job and deletes none. In the container they are in a temporary volume of
limited size, and Kubernetes evicts a pod that fills its volume.
"""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

from dljob_operator.engine.cache.predicates import Change, namespace_of
from dljob_operator.engine.periodic import Periodic
from dljob_operator.watches import GVK

ROOT = Path("/tmp/ansible-operator/runner")
"""ansible-operator's, which no option of it changes."""
INTERVAL = 60.0
"""Seconds between two passes. A run of the deleted job may still be writing until the second one after the deletion."""


class InputFolders:
    """Deletes the directory of a job in the second pass after its deletion, if no job of that name was created since.

    `note` must get each change of a job, on any thread. The directory of a job that was deleted while this process did
    not run stays.
    """

    def __init__(self, root: Path = ROOT, interval: float = INTERVAL) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._deleted: set[Path] = set()
        """Since the last pass."""
        self._due: set[Path] = set()
        """Before it."""
        self._periodic = Periodic("input folders", self.collect, interval)

    def start(self) -> None:
        self._periodic.start()

    def stop(self) -> None:
        """Request the end of the thread and return immediately."""
        self._periodic.stop()

    def note(self, gvk: GVK, change: Change) -> None:
        """Note a deletion, or that a name is in use."""
        if change.old is not None and change.new is not None:
            return
        resource = change.obj
        of_kind = self._root / gvk.group / gvk.version / gvk.kind
        folder = of_kind / namespace_of(resource) / str(resource["metadata"]["name"])
        with self._lock:
            if change.new is None:
                self._deleted.add(folder)
            else:
                self._deleted.discard(folder)
                self._due.discard(folder)

    def collect(self) -> None:
        """Delete what was due at the last pass. ansible-operator repeats a run whose new input this deletes."""
        while not self._periodic.is_stopping:
            with self._lock:
                if not self._due:
                    self._due, self._deleted = self._deleted, set()
                    return
                folder = self._due.pop()
            shutil.rmtree(folder, ignore_errors=True)
