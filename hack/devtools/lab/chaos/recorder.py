"""Watches the run's namespace directly at the API server, and keeps the history of what happened."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from devtools.lab.chaos.history import History
from devtools.lab.chaos.resources import BATCH_JOBS, PODS, Resource, watched
from devtools.testbed.client import Client
from devtools.testbed.jobs import JobKind
from devtools.testbed.watching import Watching


class Recorder:
    """A context manager with one watch for pods, one for batch Jobs, and one for each kind of job."""

    def __init__(self, client: Client, namespace: str, clock: Callable[[], float]) -> None:
        self._client = client
        self._namespace = namespace
        self._clock = clock
        self._history = History()
        self._lock = threading.Lock()
        self._stack = ExitStack()

    def __enter__(self) -> Recorder:
        resources: tuple[Resource | JobKind, ...] = (PODS, BATCH_JOBS, *watched())
        for resource in resources:
            self._stack.enter_context(self.watch(resource))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextmanager
    def history(self) -> Iterator[History]:
        """The history, which no other thread reads or changes meanwhile."""
        with self._lock:
            yield self._history

    def watch(self, resource: Resource | JobKind) -> Watching:
        """The watch of a resource, which has yet to be entered."""
        path, expired = resource.collection(self._namespace), 0

        def take(event: str, manifest: dict[str, Any], _: float) -> None:
            nonlocal expired
            if found.expired > expired:  # before the first event after it, as this may be of a new pod of a rank
                expired = found.expired
                self._forget(resource, {one["metadata"]["uid"] for one in self._client.items(path)})
            self._take(resource, event, manifest)

        found = Watching(self._client, path, take)
        return found

    def _forget(self, resource: Resource | JobKind, present: set[str]) -> None:
        """A watch that has expired has lost events: what a list lacks is gone."""
        with self.history() as history:
            if isinstance(resource, JobKind):
                history.lack_jobs(resource.group, resource.kind, present)
            elif resource == PODS:
                history.lack_pods(present)

    def _take(self, resource: Resource | JobKind, event: str, manifest: dict[str, Any]) -> None:
        with self.history() as history:
            if resource == PODS:
                history.pod_event(event, manifest, self._clock())
            elif resource == BATCH_JOBS:
                history.batch_job_event(manifest)
            else:
                history.job_event(event, manifest, self._clock())
