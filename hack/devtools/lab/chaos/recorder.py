"""Watches the run's namespace directly at the API server, and keeps the history of what happened."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from devtools.lab.chaos.history import History
from devtools.lab.chaos.resources import BATCH_JOBS, PODS, Resource, watched
from devtools.testbed.client import Client, Expired
from devtools.testbed.jobs import JobKind

_PAUSE = 0.3


class Recorder:
    """A context manager with one watch for pods, one for batch Jobs, and one for each kind of job."""

    def __init__(self, client: Client, namespace: str, clock: Callable[[], float]) -> None:
        self._client = client
        self._namespace = namespace
        self._clock = clock
        self._history = History()
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    def __enter__(self) -> Recorder:
        for resource in (PODS, BATCH_JOBS, *watched()):
            threading.Thread(target=self._follow, args=(resource,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()  # the threads are daemons: a watch ends with its time

    @contextmanager
    def history(self) -> Iterator[History]:
        """The history, which nobody else reads or changes meanwhile."""
        with self._lock:
            yield self._history

    def _follow(self, resource: Resource | JobKind) -> None:
        path = resource.collection(self._namespace)
        version = ""
        while not self._stopping.is_set():
            try:
                version = version or self._list(resource, path)
                for event in self._client.watch(path, version):
                    if self._stopping.is_set():
                        return
                    if event["type"] != "BOOKMARK":
                        self._take(event["type"], event["object"], resource)
                    version = event["object"]["metadata"]["resourceVersion"]
            except Expired:
                version = ""
            except OSError:  # the API server restarts; the watch continues where it ended
                time.sleep(_PAUSE)

    def _list(self, resource: Resource | JobKind, path: str) -> str:
        """A list replaces the watch where this one has lost events: objects that it lacks are gone."""
        listed = self._client.request("GET", path)
        items = listed.get("items") or []
        for item in items:
            self._take("MODIFIED", item, resource)
        with self.history() as history:
            present = {item["metadata"]["uid"] for item in items}
            if isinstance(resource, JobKind):
                history.lack_jobs(resource.group, resource.kind, present)
            elif resource == PODS:
                history.lack_pods(present)
        return str(listed["metadata"]["resourceVersion"])

    def _take(self, event: str, manifest: dict[str, Any], resource: Resource | JobKind) -> None:
        with self.history() as history:
            if resource == PODS:
                history.pod_event(event, manifest, self._clock())
            elif resource == BATCH_JOBS:
                history.batch_job_event(manifest)
            else:
                history.job_event(event, manifest, self._clock())
