"""The jobs of the user, kept up to date by one watch for all open pages."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from dljob.client import Change, Client
from dljob.errors import DljobError
from dljob.view import JobView, view

AGAIN_SECONDS = 5.0


class LiveJobs:
    """What a watch has seen. Thread-safe; :meth:`close` ends the thread."""

    def __init__(self, client: Client, *, all_namespaces: bool = True) -> None:
        self._client = client
        self._all_namespaces = all_namespaces
        self._lock = threading.Lock()
        self._jobs: dict[str, Change] = {}
        self._versions: dict[tuple[str, str, str], str] = {}
        self._stopped = threading.Event()
        self.version = 0
        """Changes with the jobs."""
        self.error = ""
        """The sentence of the last failure; "" once changes come again."""
        threading.Thread(target=self._run, daemon=True).start()

    def views(self) -> Sequence[JobView]:
        """All jobs, with their ages of now."""
        with self._lock:
            found = [change.object for change in self._jobs.values()]
        return [view(one) for one in found]

    def version_of(self, namespace: str, resource: str, name: str) -> str:
        """The resourceVersion of a job; "" where there is none."""
        return self._versions.get((namespace, resource, name), "")

    def close(self) -> None:
        """End the thread."""
        self._stopped.set()

    @property
    def is_closed(self) -> bool:
        return self._stopped.is_set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                for change in self._client.watch(all_namespaces=self._all_namespaces, stop=self._stopped.is_set):
                    self._apply(change)
            except DljobError as e:
                self.error = str(e)
                self.version += 1
            self._stopped.wait(AGAIN_SECONDS)

    def _apply(self, change: Change) -> None:
        job = change.job
        key = job.namespace, job.resource, job.name
        with self._lock:
            if change.type == "DELETED":
                self._jobs.pop(job.uid, None)
                self._versions.pop(key, None)
            else:
                self._jobs[job.uid] = change
                self._versions[key] = str(change.object["metadata"].get("resourceVersion", ""))
            self.error = ""
            self.version += 1
