"""Serves the page on this machine until Ctrl-C."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from dljob.client import Client
from dljob.web.app import create
from dljob.web.connection import Connection
from dljob.web.guard import Keys
from dljob.web.live import of_user
from dljob.web.opening import opened

ADDRESS = "127.0.0.1"
_MOST_CONNECTIONS = 200


@dataclass(frozen=True, slots=True)
class Content:
    """What the page shows."""

    all_namespaces: bool = True
    history: str = ""
    """The URL of the database of ended jobs, "" for none."""


def run(app: ASGIApp, listening: socket.socket, most: int, **settings: Any) -> None:
    """Answer ``most`` connections until Ctrl-C or SIGTERM; ``settings`` are further ones of uvicorn.

    It logs no request, whose address may have a token.
    """
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        limit_concurrency=most,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        **settings,
    )
    uvicorn.Server(config).run([listening])


def serve(
    client: Client,
    port: int,
    *,
    browser: bool,
    say: Callable[[str], None],
    content: Content | None = None,
) -> None:
    """Print the address, and answer; ``port`` 0 is any free one. Raises OSError for one that is taken."""
    content = content or Content()
    keys = Keys()
    with socket.create_server((ADDRESS, port)) as listening:
        live = of_user(client, all_namespaces=content.all_namespaces)
        number = listening.getsockname()[1]
        hosts = [f"{name}:{number}" for name in (ADDRESS, "localhost")]
        address = f"http://{ADDRESS}:{number}/login?token={keys.token}"
        say(f"Open {address}\nThe address is good for one browser. Ctrl-C ends the page.")
        try:
            with opened(address) if browser else nullcontext():
                run(create(client, live, keys, hosts, content.history), listening, _MOST_CONNECTIONS)
        finally:
            live.close()
