"""What follows a request that has no answer, or that the API server postpones: the steps of one request."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.api.steps import Steps
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import ApiRequest, TooLate
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError, decode

_TRIES = 4
_PATIENCE = 3.0
"""Seconds in which a repetition may be decided on, with the waits for a connection and for credentials. An API server
that restarts closes all connections, and some may be chosen before this is seen; one that is overloaded asks the client
to wait for 1 to 32 seconds."""
_IDEMPOTENT = ("GET", "PUT", "DELETE")


@dataclass(frozen=True, slots=True)
class Response:
    """A response, whatever its status; ``retry_after`` is the header of that name, "" without one."""

    status: int
    data: bytes
    retry_after: str = ""


class NoResponse(Exception):
    """There is no complete response. Unless the request ``was_sent``, the API server has not got it."""

    def __init__(self, message: str, *, was_sent: bool = True, timed_out: bool = False) -> None:
        self.was_sent = was_sent
        self.timed_out = timed_out
        super().__init__(message)


def answered(request: ApiRequest) -> Steps[dict[str, Any]]:
    """Send ``request``, again where that helps and does no harm, and return the object in the response.

    It expects a :class:`Response`, :class:`NoResponse` or :class:`TooLate`, and raises :class:`ApiError`.
    """
    last_begin = time.monotonic() + _PATIENCE
    for tries_left in reversed(range(_TRIES)):
        try:
            response: Response = yield request
        except TooLate as e:
            raise ApiError(0, "NotLeading", str(e)) from e
        except NoResponse as e:
            if not tries_left or time.monotonic() > last_begin or not _may_repeat(request.method, e):
                raise ApiError(0, "NoAnswer", f"{request.method} {request.path}: {e}") from e
            continue
        pause = _pause(request.method, response)
        if not tries_left or pause is None or time.monotonic() + pause > last_begin:
            break
        yield pause
    return decode(response.status, response.data)


def _may_repeat(method: str, error: NoResponse) -> bool:
    """Whether to repeat a request that was not sent, or that failed and whose repetition does no harm.

    What is not answered in time is not repeated.
    """
    return not error.was_sent or (method in _IDEMPOTENT and not error.timed_out)


def _pause(method: str, response: Response) -> float | None:
    """The seconds for which the API server asks to wait before the request is repeated; None for an answer.

    A creation or a patch that gets such an answer is not repeated: the job may be deleted or suspended meanwhile.
    """
    is_asked = method in _IDEMPOTENT and response.status in (429, 503) and response.retry_after.isdecimal()
    return float(response.retry_after) if is_asked else None
