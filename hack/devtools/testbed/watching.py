"""A watch that continues until it is ended, whatever closes it."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Self

from devtools.testbed.client import JSON, Client, Refused

Event = tuple[str, dict[str, Any], float]
_PAUSE = 0.2
"""Seconds before a failed watch starts again."""


class Watching:
    """Calls ``take`` with the type, the object and the time (monotonic clock) of each event, on a thread of its own.

    A watch begins with an event ADDED for each object that exists; one that expired begins again like that. ``take``
    must therefore tolerate repeated events. An event that Python cannot decode, because it is nested too deeply, is
    left out. With ``only``, events of other types are not even decoded.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        take: Callable[[str, dict[str, Any], float], None],
        *,
        accept: str = JSON,
        only: str = "",
    ) -> None:
        self._client = client
        self._path = path
        self._take = take
        self._accept = accept
        self._wanted = (f'{{"type":"{only}'.encode(), b'{"type":"ERROR"')
        self._stopping = threading.Event()
        self._connection: http.client.HTTPSConnection | None = None
        self._last = b""
        self._thread = threading.Thread(target=self._follow, name=f"watch {path}", daemon=True)
        self.failure: BaseException | None = None
        """The error of ``take`` that ended the thread: a defect of the tool."""
        self.expired = 0
        """How often it began again: events in between may be missing."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)

    def _follow(self) -> None:
        while not self._stopping.is_set():
            self._connection = self._client.connect(600)
            try:
                for line in self._client.lines(self._connection, self._path + self._query(), self._accept):
                    if not self._one(line, time.monotonic()):
                        break
                else:
                    continue
            except Refused as refusal:
                if refusal.status == HTTPStatus.GONE:
                    self._expire()
            except (OSError, http.client.HTTPException, ValueError):
                pass  # the server is gone for a while
            except BaseException as failure:
                self.failure = failure
                return
            finally:
                self._connection.close()
            self._stopping.wait(_PAUSE)

    def _query(self) -> str:
        since = ""
        if self._last:
            since = f"&resourceVersion={json.loads(self._last)['object']['metadata']['resourceVersion']}"
        return f"{'&' if '?' in self._path else '?'}watch=true&allowWatchBookmarks=true{since}"

    def _expire(self) -> None:
        self._last = b""
        self.expired += 1

    def _one(self, line: bytes, now: float) -> bool:
        """Whether the watch is still valid after this event."""
        if line.startswith(self._wanted):
            try:
                event = json.loads(line)
            except RecursionError:
                return True
            if event["type"] == "ERROR":
                self._expire()
                return False
            if event["type"] != "BOOKMARK":
                self._take(event["type"], event["object"], now)
        self._last = line
        return True
