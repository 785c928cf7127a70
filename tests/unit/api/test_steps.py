"""Steps: one request at a time, and steps whose requests are steps themselves."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.steps import Steps, ask, drive, resolve
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import ApiRequest

A, B = ApiRequest("GET", "/a"), ApiRequest("GET", "/b")


def steps() -> Steps[list[Any]]:
    found = [(yield A)]
    yield 0.5
    try:
        found.append((yield from ask(B)))
    except KeyError as error:
        found.append(error.args[0])
    return found


def twice(request: ApiRequest) -> Steps[str]:
    """Each request is sent twice, with a pause."""
    first = yield request
    yield 0.1
    return f"{first}{yield request}"


def send(request: ApiRequest) -> str:
    if request is B:
        raise KeyError("missing")
    return request.path


@pytest.mark.parametrize(
    ("made", "result", "pauses"),
    [(steps(), ["/a", "missing"], [0.5]), (resolve(steps(), twice), ["/a/a", "missing"], [0.1, 0.5])],
)
def test_the_steps_get_answers_and_errors_in_their_order(
    made: Steps[Any], result: list[str], pauses: list[float]
) -> None:
    slept: list[float] = []
    assert drive(made, send, slept.append) == result
    assert slept == pauses


@pytest.mark.parametrize("wrap", [lambda made: made, lambda made: resolve(made, ask)])
def test_an_error_that_the_steps_do_not_catch_is_raised(wrap: Any) -> None:
    with pytest.raises(KeyError, match="missing"):
        drive(wrap(ask(B)), send, lambda seconds: None)


@pytest.mark.parametrize("wrap", [lambda made: made, lambda made: resolve(made, ask)])
def test_steps_without_a_request_end_at_once(wrap: Any) -> None:
    def nothing() -> Steps[int]:
        return 7
        yield A

    assert drive(wrap(nothing()), send, lambda seconds: None) == 7
