"""The responses of the API server: their content, or the error."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared import json_codec

_LONGEST_TEXT = 500
"""Characters of a response that is not the API server's JSON, such as the page of a proxy."""


_DENIAL = re.compile(r"admission webhook \"[^\"]*\" denied the request|ValidatingAdmissionPolicy '[^']*' with binding ")
"""What the API server says of a denial by an admission rule. The status may be that of an invalid object: a webhook
that sets none has 400, and a ValidatingAdmissionPolicy by default 422."""


class ApiError(Exception):
    """A failed request. ``str`` is the message.

    ``status`` is the HTTP status (0: no response), ``reason`` the API's reason in one word (AlreadyExists, "" where the
    response has none), ``message`` a sentence.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        self.status = status
        self.reason = reason
        self.message = message
        super().__init__(message)

    @property
    def permanent(self) -> bool:
        """Whether a retry of the same request cannot succeed, because the object is invalid."""
        return self.status in (400, 422) and not self.is_denial

    @property
    def is_denial(self) -> bool:
        """Whether a quota, an admission rule or a missing permission denied the request, which may change."""
        return self.status == 403 or bool(_DENIAL.search(self.message))

    @property
    def summary(self) -> str:
        """The message after the reason, or after the HTTP status where there is no reason."""
        return f"{self.reason or self.status}: {self.message}"


def decode(status: int, data: bytes, loads: Callable[[bytes], Any] = json_codec.loads) -> dict[str, Any]:
    """The object in a response, decoded by ``loads``.

    Raises :class:`ApiError` for an error, and for anything but a JSON object.
    """
    if not is_success(status):
        raise error_of(status, data)
    try:
        content = loads(data) if data else {}
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise error_of(status, data)
    return content


def is_success(status: int) -> bool:
    """Whether an HTTP status means success."""
    return 200 <= status < 300


def error_of(status: int, data: bytes) -> ApiError:
    """The error in a response: the reason and message of a Status object, else the beginning of its text."""
    text = data.decode(errors="replace")
    try:
        content = json.loads(text)
    except ValueError:
        content = {"message": text.strip()[:_LONGEST_TEXT]}
    if not isinstance(content, dict):
        content = {}
    reason, message = content.get("reason") or "", content.get("message") or f"HTTP status {status}"
    return ApiError(status, str(reason), str(message))
