"""The jobs of a scope, kept up to date by one watch for all open pages."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence

from dljob import kinds
from dljob.client import Change, Client
from dljob.errors import DljobError
from dljob.kinds import Resource
from dljob.view import JobView, view

AGAIN_SECONDS = 5.0
Watch = Callable[[Callable[[], bool]], Iterator[Change | None]]
"""Yields changes until its argument is true, and ``None`` after each list."""
_number = itertools.count()


class LiveJobs:
    """What a watch has seen. Thread-safe; :meth:`close` ends the thread."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._lock = threading.Lock()
        self._jobs: dict[str, Resource] = {}
        self._versions: dict[tuple[str, str, str], str] = {}
        self._stopped = threading.Event()
        self._name = next(_number)
        self._changes = 0
        self._is_listed = threading.Event()
        self.error = ""
        """The sentence of the last failure; "" once changes come again."""
        threading.Thread(target=self._run, daemon=True).start()

    def views(self, timeout: float = 0.0) -> Sequence[JobView]:
        """All jobs, with their ages of now; waits ``timeout`` seconds at most for the first list."""
        self._is_listed.wait(timeout)
        with self._lock:
            found = list(self._jobs.values())
        return [view(one) for one in found]

    @property
    def version(self) -> str:
        """Changes with the jobs; no two objects of this class have the same."""
        return f"{self._name}.{self._changes}"

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
            listed: set[str] | None = set()
            try:
                for change in self._watch(self._stopped.is_set):
                    if change:
                        self._apply(change)
                        if listed is not None:
                            listed.add(change.job.uid)
                    elif listed is not None:  # what went while no watch ran
                        self._keep(listed)
                        listed = None
            except DljobError as e:
                self._fail(str(e))
                self._stopped.wait(AGAIN_SECONDS)

    def _fail(self, sentence: str) -> None:
        self.error = sentence
        self._changes += 1
        self._is_listed.set()

    def _keep(self, uids: set[str]) -> None:
        with self._lock:
            for uid in [one for one in self._jobs if one not in uids]:
                self._versions.pop(_key(self._jobs.pop(uid)), None)
            self.error = ""
            self._changes += 1
        self._is_listed.set()

    def _apply(self, change: Change) -> None:
        key = _key(change.object)
        with self._lock:
            if change.type == "DELETED":
                self._jobs.pop(change.job.uid, None)
                self._versions.pop(key, None)
            else:
                self._jobs[change.job.uid] = change.object
                self._versions[key] = str(change.object["metadata"].get("resourceVersion", ""))
            self._changes += 1


def of_user(client: Client, *, all_namespaces: bool = True) -> LiveJobs:
    """The jobs of one user, in all namespaces or in that of the client."""
    where = None if all_namespaces else client.namespace
    return LiveJobs(lambda stop: client.follow(kinds.ALL, where, stop=stop))


def _key(job: Resource) -> tuple[str, str, str]:
    metadata = job["metadata"]
    return str(metadata.get("namespace")), kinds.kind_of(job).resource, str(metadata["name"])
