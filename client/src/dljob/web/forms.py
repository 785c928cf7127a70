"""Reads the forms of the page."""

from __future__ import annotations

import asyncio
import hmac
from contextlib import suppress
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request

LARGEST = 10_000
"""Bytes of a form."""
SECONDS = 20.0
"""Until a form is complete."""


def same(given: str, wanted: str) -> bool:
    """Compare without telling by the time how much is right."""
    return hmac.compare_digest(given.encode(), wanted.encode())


async def fields(request: Request, most: int = LARGEST) -> dict[str, str]:
    """The fields of the form; none for a form of more than ``most`` bytes or ``SECONDS``, or none."""
    body = b""
    with suppress(TimeoutError, ClientDisconnect):
        async with asyncio.timeout(SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > most:
                    return {}
        return dict(parse_qsl(body.decode(errors="replace")))
    return {}
