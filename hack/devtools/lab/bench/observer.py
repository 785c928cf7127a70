"""Records when a peer's objects appear, with watches of the harness, in the same way for every peer."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from devtools.lab.bench.client import METADATA_ONLY, Client
from devtools.lab.bench.workloads import JOB_LABEL, collection

PODS = "/api/v1/namespaces/{}/pods"
_ADDED = b'{"type":"ADDED"'
_ERROR = b'{"type":"ERROR"'
_GATHER = 0.01
"""Interval in seconds at which a wait checks its condition: checking after each of thousands of events would take CPU
time from the measured peer. The times themselves are recorded when the events arrive."""


@dataclass
class Seen:
    """The times of one job's events, on the monotonic clock."""

    accepted: float | None = None
    appeared: float | None = None
    """The job's own first event, which may precede the response to its POST."""
    pods: list[float] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    running: float | None = None
    finished: float | None = None


def conditions(status: dict[str, Any]) -> set[str]:
    """The types of the conditions that are True."""
    return {c["type"] for c in status.get("conditions") or () if c.get("status") == "True"}


def _version(line: bytes) -> str:
    return str(json.loads(line)["object"]["metadata"]["resourceVersion"])


class Observer:
    """Watches the pods and the jobs of one namespace, from before the first one is created. A context manager."""

    def __init__(self, client: Client, namespace: str, kinds: Collection[str] = ("MXJob",)) -> None:
        self._client = client
        self._lock = threading.RLock()
        self._news = threading.Event()
        self._jobs: dict[str, Seen] = {}
        self._stopping = False
        self._problem: Exception | None = None
        pods = (PODS.format(namespace), METADATA_ONLY, self._pod)
        watches = [pods, *((collection(kind, namespace), "application/json", self._job) for kind in kinds)]
        self._connections = [client.connection(3600) for _ in watches]
        self._threads = [
            threading.Thread(target=self._follow, args=(connection, *watch), daemon=True)
            for connection, watch in zip(self._connections, watches, strict=True)
        ]

    def __enter__(self) -> Observer:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping = True
        for connection in self._connections:
            if connection.sock is not None:
                with contextlib.suppress(OSError):
                    connection.sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)

    def accepted(self, name: str, moment: float) -> None:
        with self._lock:
            self._of(name).accepted = moment

    def seen(self, name: str) -> Seen:
        with self._lock:
            return self._of(name)

    def made(self, names: Collection[str]) -> int:
        """How many pods of these jobs have appeared."""
        with self._lock:
            return sum(len(self._of(name).pods) for name in names)

    def wait(self, wanted: Callable[[], bool], timeout: float) -> bool:
        """Whether ``wanted`` became true in time; it is checked soon after an event."""
        deadline = time.monotonic() + timeout
        while True:
            self._news.clear()
            with self._lock:
                if wanted():
                    return True
                if self._problem is not None:
                    raise self._problem
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            if self._news.wait(min(left, 1.0)):
                time.sleep(_GATHER)

    def _of(self, name: str) -> Seen:
        return self._jobs.setdefault(name, Seen())

    def _follow(self, connection: Any, path: str, accept: str, take: Callable[[bytes, float], None]) -> None:
        """Watch until the end; if the API server closes a watch that is too slow, continue from the last version."""
        line, where = b"", f"{path}?watch=true"
        try:
            while not self._stopping:
                query = f"&resourceVersion={_version(line)}" if line else ""
                for line in self._client.lines(connection, where + query, accept):
                    if line.startswith(_ERROR):
                        raise ConnectionError(f"a watch of the harness failed: {line[:200]!r}")
                    take(line, time.monotonic())
                connection.close()
        except Exception as error:
            if not self._stopping:
                with self._lock:
                    self._problem = error
                    self._news.set()

    def _pod(self, line: bytes, now: float) -> None:
        if not line.startswith(_ADDED):
            return
        metadata = json.loads(line)["object"]["metadata"]
        job = (metadata.get("labels") or {}).get(JOB_LABEL)
        if job is None:
            return
        with self._lock:
            seen = self._of(job)
            if metadata["name"] in seen.names:
                return
            seen.pods.append(now)
            seen.names.add(metadata["name"])
            self._news.set()

    def _job(self, line: bytes, now: float) -> None:
        resource = json.loads(line)["object"]
        holds = conditions(resource.get("status") or {})
        with self._lock:
            seen = self._of(resource["metadata"]["name"])
            if seen.appeared is None:
                seen.appeared = now
            if "Running" in holds and seen.running is None:
                seen.running = now
            if "Succeeded" in holds and seen.finished is None:
                seen.finished = now
            self._news.set()
