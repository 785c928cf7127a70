"""Requests as steps: a generator yields what it wants to be sent, and is resumed with the answer.

So the same code serves one request at a time and many at once, in one thread, on libcurl's connections.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar, cast

from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import ApiRequest

Result = TypeVar("Result")
Steps = Generator[ApiRequest | float, Any, Result]
"""Yields a request, to which the answer is sent or its error thrown, or the seconds of a pause."""


def ask(request: ApiRequest) -> Steps[Any]:
    """The steps of one request, whose result is its answer."""
    return (yield request)


def resolve(steps: Steps[Result], attempt: Callable[[ApiRequest], Steps[Any]]) -> Steps[Result]:
    """The steps in which each request of ``steps`` is replaced by those of ``attempt``."""
    try:
        wanted = next(steps)
        while True:
            if isinstance(wanted, float):
                yield wanted
                wanted = steps.send(None)
                continue
            try:
                answer = yield from attempt(wanted)
            except Exception as error:
                wanted = steps.throw(error)
            else:
                wanted = steps.send(answer)
    except StopIteration as end:
        result: Result = end.value
        return result


def drive(steps: Steps[Result], send: Callable[[ApiRequest], Any], sleep: Callable[[float], None]) -> Result:
    """Run ``steps`` to the end, with one request at a time. An error of ``send`` is raised within ``steps``."""

    def sent(request: ApiRequest) -> Steps[Any]:
        yield from ()
        return send(request)

    pauses = resolve(steps, sent)
    try:
        while True:
            sleep(cast(float, next(pauses)))
    except StopIteration as end:
        result: Result = end.value
        return result
