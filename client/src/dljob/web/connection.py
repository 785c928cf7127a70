"""A connection to the page, whose client cannot lock others out by sending or reading nothing.

uvicorn limits the time between two requests alone. Here, as at the operator's own ports, all that a client has to do
has a time limit, and at the largest number of connections a new one ends another: the one that has waited longest.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS = 20.0
"""Until the head of a request is complete, and between two looks at how much of the answer the client has taken."""
_TAKEN = 64 * 1024
"""Bytes that it takes meanwhile, if so many are left."""


class Connection(H11Protocol):
    """uvicorn's ``limit_concurrency`` is the largest number of connections; no request gets a 503 for it."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._most, self.limit_concurrency = self.limit_concurrency, None
        self._timer: asyncio.TimerHandle | None = None
        self.since = self.loop.time()
        """When the client had to act."""

    @property
    def waits(self) -> bool:
        """Whether it is the client's turn: to begin a request, or to send the rest of it."""
        return not self._is_answering or self.cycle.more_body

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    # --- what uvicorn and asyncio call

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._limit_time()
        if self._most is not None and len(self.connections) > self._most:
            self._end_another()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
        if self._is_answering and not self.flow.write_paused:
            self._stop()

    def on_response_complete(self) -> None:
        self._limit_time()  # before the next request, which may be there already
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._limit_time()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._is_answering:
            self._stop()

    # --- time

    def _limit_time(self) -> None:
        self.since = self.loop.time()
        self._look_later()

    def _look_later(self) -> None:
        self._stop()
        self._timer = self.loop.call_later(SECONDS, self._look, self.transport.get_write_buffer_size())

    def _look(self, unread: int) -> None:
        """End it, unless the client has taken enough of what was unread then."""
        taken = unread - self.transport.get_write_buffer_size()
        if unread and taken >= min(unread, _TAKEN):
            self._look_later()
        else:
            self.transport.abort()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_another(self) -> None:
        others = [one for one in self.connections if isinstance(one, Connection) and one is not self]
        waiting = [one for one in others if one.waits and not one.transport.is_closing()]
        if waiting:
            min(waiting, key=lambda one: one.since).transport.abort()
