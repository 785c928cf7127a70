"""A watch that continues until it is ended, whatever closes it."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from devtools.lab.bench.client import JSON, Client, Refused

Event = tuple[str, dict[str, Any], float]
_PAUSE = 0.2
"""Seconds before a failed watch starts again."""


class Watching:
    """Calls ``take`` with the type, the object and the time (monotonic clock) of each event, on a thread of its own.

    A watch begins with an event ADDED for each object that exists; one that expired begins again like that. ``take``
    must therefore tolerate repeated events. An event that Python cannot decode, because it is nested too deeply, is
    left out.
    """

    def __init__(self, client: Client, path: str, take: Callable[[str, dict[str, Any], float], None]) -> None:
        self._client = client
        self._path = path
        self._take = take
        self._stopping = threading.Event()
        self._connection: http.client.HTTPSConnection | None = None
        self._version = ""
        self._thread = threading.Thread(target=self._follow, name=f"watch {path}", daemon=True)
        self.failure: BaseException | None = None
        """The error of ``take`` that ended the thread: a defect of the tool."""

    def __enter__(self) -> Watching:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)

    def _follow(self) -> None:
        while not self._stopping.is_set():
            self._connection = self._client.connection(600)
            query = f"?watch=true&allowWatchBookmarks=true&resourceVersion={self._version}"
            try:
                for line in self._client.lines(
                    self._connection, self._path + query.removesuffix("&resourceVersion="), JSON
                ):
                    if not self._one(line, time.monotonic()):
                        break
            except Refused as refusal:
                if refusal.status == 410:
                    self._version = ""
            except (OSError, http.client.HTTPException, ValueError):
                pass  # the server closed it
            except BaseException as failure:
                self.failure = failure
                return
            finally:
                self._connection.close()
            self._stopping.wait(_PAUSE)

    def _one(self, line: bytes, now: float) -> bool:
        """Whether the watch is still valid after this event."""
        try:
            event = json.loads(line)
        except RecursionError:
            return True
        kind, found = event["type"], event["object"]
        if kind == "ERROR":
            self._version = ""
            return False
        self._version = found["metadata"]["resourceVersion"]
        if kind != "BOOKMARK":
            self._take(kind, found, now)
        return True
