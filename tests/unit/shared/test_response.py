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


WEBHOOK = 'admission webhook "rules.example.com" denied the request: no'
POLICY = "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'rules' with binding 'all' denied request: no"


@pytest.mark.parametrize(
    ("status", "message", "is_denial"),
    [
        pytest.param(400, WEBHOOK, True, id="a webhook that sets no status"),
        pytest.param(422, WEBHOOK, True, id="a webhook that sets one"),
        pytest.param(422, POLICY, True, id="a policy, by default"),
        pytest.param(403, "exceeded quota", True, id="a quota"),
        pytest.param(422, 'Pod "a" is invalid: spec.containers[0].image: Required value', False, id="invalid"),
        pytest.param(400, 'strict decoding error: unknown field "spec.x"', False, id="an unknown field"),
        pytest.param(
            500, 'failed calling webhook "rules.example.com": context deadline exceeded', False, id="no answer"
        ),
    ],
)
def test_a_denial_may_be_lifted(status: int, message: str, is_denial: bool) -> None:
    error = ApiError(status, "", message)
    assert error.is_denial is is_denial
    assert error.permanent is (status in (400, 422) and not is_denial)
