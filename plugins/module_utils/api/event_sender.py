"""Creates Events one after the other on a thread of its own, so that no pod waits for them.

Of many new jobs an Event of each would be a sixth of the writes before the last pod. An Event that the end of the
process or of the Lease cuts off is lost, as Events may be; the status has the same information.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from queue import SimpleQueue

from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient
from ansible_collections.dljob.operator.plugins.module_utils.api.steps import ask
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import ApiRequest
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

MOST_WAITING = 1000
"""Events that wait; further ones are created by the caller, who then waits for the API server."""
LONGEST_END = 5.0
"""Seconds for the remaining Events at the end."""


class EventSender:
    """Creates Events with ``client``. It is thread-safe; use it as a context manager, which sends the rest."""

    def __init__(self, client: RestClient) -> None:
        self._client = client
        self._waiting: SimpleQueue[ApiRequest | None] = SimpleQueue()
        self._problems: list[str] = []
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> EventSender:
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join(LONGEST_END)

    def send(self, events: Sequence[ApiRequest]) -> list[str]:
        """Create ``events`` later, or now where too many wait. Returns the errors of earlier ones."""
        if self._waiting.qsize() > MOST_WAITING:
            for event in events:
                self._create(event)
        elif events:
            self._start()
            for event in events:
                self._waiting.put(event)
        problems, self._problems = self._problems, []
        return problems

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="events", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while (event := self._waiting.get()) is not None:
            self._create(event)

    def _create(self, event: ApiRequest) -> None:
        try:
            self._problems += create(self._client, event)
        except Exception as error:  # of the credentials, for example: the thread must go on
            self._problems.append(f"Event: {type(error).__name__}: {error}")


def create(client: RestClient, event: ApiRequest) -> list[str]:
    """Create an Event now, and return the error, if there is one."""
    try:
        client.run(ask(event))
    except ApiError as error:
        return [f"Event: {error.message}"]
    return []
