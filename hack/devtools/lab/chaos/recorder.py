"""Watches the run's namespace directly at the API server, and keeps the history of what happened."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from devtools.lab.chaos.history import History, JobRecord, Pod, Violation
from devtools.lab.chaos.upstream import Client, Expired
from devtools.lab.chaos.workload import BATCH_JOBS, PODS, WATCHED, Plural

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
        self._threads = [
            threading.Thread(target=self._follow, args=(plural,), daemon=True)
            for plural in (PODS, BATCH_JOBS, *WATCHED)
        ]

    def __enter__(self) -> Recorder:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()  # the threads are daemons: a watch ends with its time

    def read(self, question: Callable[[History], Any]) -> Any:
        """The answer to a question about the history, which must keep nothing of it."""
        with self._lock:
            return question(self._history)

    def edited(self, uid: str) -> None:
        with self._lock:
            self._history.edited.add(uid)

    def created(self, manifest: Mapping[str, Any]) -> None:
        """Remember a job that the run has created, by the API server's answer."""
        with self._lock:
            self._history.job_created(manifest)

    def deletes(self, uid: str) -> None:
        """Remember a job that the run deletes."""
        with self._lock:
            self._history.deleted.add(uid)

    def deletes_all(self) -> None:
        with self._lock:
            self._history.all_deleted()

    def disturbs(self, uid: str) -> None:
        """Remember a job of which the run takes a pod away."""
        with self._lock:
            self._history.disturbed.add(uid)

    def loses(self, node: str) -> None:
        """Remember a node that the run deletes."""
        with self._lock:
            self._history.lost_nodes.add(node)

    def begin_round(self, number: int) -> None:
        with self._lock:
            self._history.round = number

    def jobs(self) -> list[JobRecord]:
        """The present jobs, by name."""
        with self._lock:
            return sorted((job for job in self._history.jobs.values() if job.exists), key=lambda job: job.name)

    def pods(self) -> list[Pod]:
        """The present pods, by name."""
        with self._lock:
            return sorted((pod for pod in self._history.pods.values() if pod.exists), key=lambda pod: pod.name)

    def violations(self) -> list[Violation]:
        with self._lock:
            return list(self._history.violations)

    def _follow(self, plural: Plural) -> None:
        path = plural.path(self._namespace)
        version = ""
        while not self._stopping.is_set():
            try:
                version = version or self._list(plural)
                for event in self._client.watch(path, version):
                    if self._stopping.is_set():
                        return
                    if event["type"] != "BOOKMARK":
                        self._take(event["type"], event["object"], plural)
                    version = event["object"]["metadata"]["resourceVersion"]
            except Expired:
                version = ""
            except OSError:  # the API server restarts; the watch continues where it ended
                time.sleep(_PAUSE)

    def _list(self, plural: Plural) -> str:
        listed = self._client.request("GET", plural.path(self._namespace))
        items = listed.get("items") or []
        with self._lock:
            if plural == PODS:
                self._history.listed_pods(items, self._clock())
            elif plural == BATCH_JOBS:
                for item in items:
                    self._history.batch_job_event(item)
            else:
                self._history.listed_jobs((f"{plural.group}/{plural.plural}",), items, self._clock())
        return str(listed["metadata"]["resourceVersion"])

    def _take(self, kind: str, manifest: dict[str, Any], plural: Plural) -> None:
        with self._lock:
            if plural == PODS:
                self._history.pod_event(kind, manifest, self._clock())
            elif plural == BATCH_JOBS:
                self._history.batch_job_event(manifest)
            else:
                self._history.job_event(kind, manifest, self._clock())
