"""The jobs of a scope, kept up to date by one watch for all open pages."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from dljob import kinds
from dljob.client import Change, Client
from dljob.errors import DljobError
from dljob.view import JobView, Times, aged, times_of

AGAIN_SECONDS = 5.0
Watch = Callable[[Callable[[], bool]], Iterator[Change | None]]
"""Yields changes until its argument is true, and ``None`` after each list."""
_Key = tuple[str, str, str]
"""Namespace, resource and name."""
_number = itertools.count()
_log = logging.getLogger(__name__)


class LiveJobs:
    """What a watch has seen. Thread-safe; :meth:`close` ends the thread."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._lock = threading.Lock()
        self._jobs: dict[_Key, tuple[JobView, Times]] = {}
        """Without the objects, whose templates may be large."""
        self._versions: dict[_Key, str] = {}
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
        now = datetime.now(UTC)
        return [aged(seen, times, now) for seen, times in found]

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
            try:
                self._follow()
            except DljobError as e:
                self._fail(str(e))
            except Exception:  # the thread is needed as long as there are pages
                sentence = "The jobs cannot be read at the moment."
                if self.error != sentence:
                    _log.exception(sentence)
                self._fail(sentence)
            else:
                continue
            self._stopped.wait(AGAIN_SECONDS)

    def _follow(self) -> None:
        listed: set[_Key] | None = set()
        for change in self._watch(self._stopped.is_set):
            if change:
                self._apply(change)
                if listed is not None:
                    listed.add(_key(change.job))
            elif listed is not None:  # what went while no watch ran
                self._keep(listed)
                listed = None

    def _fail(self, sentence: str) -> None:
        self.error = sentence
        self._changes += 1
        self._is_listed.set()

    def _keep(self, keys: set[_Key]) -> None:
        with self._lock:
            for key in self._jobs.keys() - keys:
                del self._jobs[key], self._versions[key]
            self.error = ""
            self._changes += 1
        self._is_listed.set()

    def _apply(self, change: Change) -> None:
        key = _key(change.job)
        with self._lock:
            if change.type == "DELETED":
                self._jobs.pop(key, None)
                self._versions.pop(key, None)
            else:
                self._jobs[key] = change.job, times_of(change.object, change.job.state)
                self._versions[key] = str(change.object["metadata"].get("resourceVersion", ""))
            self._changes += 1


def of_user(client: Client, *, all_namespaces: bool = True) -> LiveJobs:
    """The jobs of one user, in all namespaces or in that of the client."""
    where = None if all_namespaces else client.namespace
    return LiveJobs(lambda stop: client.follow(kinds.ALL, where, stop=stop))


def _key(job: JobView) -> _Key:
    return job.namespace, job.resource, job.name
