"""How the responses of the API server, and of proxies before it, are read."""

from __future__ import annotations

import json

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError, decode

STATUS = {"kind": "Status", "status": "Failure", "reason": "Conflict", "message": "it was changed"}


def test_an_object_and_an_empty_response() -> None:
    assert decode(201, b'{"kind": "Pod"}') == {"kind": "Pod"}
    assert decode(200, b"") == {}


@pytest.mark.parametrize(
    ("status", "data", "reason", "message"),
    [
        (409, json.dumps(STATUS).encode(), "Conflict", "it was changed"),
        (500, b'{"message": null}', "", "HTTP status 500"),
        (502, b" <html>bad gateway</html>\n", "", "<html>bad gateway</html>"),
        (503, b"x" * 1000, "", "x" * 500),
        (504, b"", "", "HTTP status 504"),
        (500, b"[1]", "", "HTTP status 500"),
        (200, b"<html>log in</html>", "", "<html>log in</html>"),
        (302, b"", "", "HTTP status 302"),
    ],
)
def test_an_error_and_what_is_no_object(status: int, data: bytes, reason: str, message: str) -> None:
    with pytest.raises(ApiError) as raised:
        decode(status, data)
    error = raised.value
    assert (error.status, error.reason, error.message, str(error)) == (status, reason, message, message)


def test_the_summary_names_the_reason_or_the_status() -> None:
    assert ApiError(409, "Conflict", "it was changed").summary == "Conflict: it was changed"
    assert ApiError(502, "", "bad gateway").summary == "502: bad gateway"


@pytest.mark.parametrize(("status", "permanent"), [(400, True), (422, True), (409, False), (0, False), (500, False)])
def test_an_invalid_object_stays_invalid(status: int, permanent: bool) -> None:
    assert ApiError(status, "", "").permanent is permanent
