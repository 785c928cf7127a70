"""A function that serves the page with uvicorn, in a thread."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import uvicorn

from support.polling import until


@contextmanager
def page_thread(monkeypatch: pytest.MonkeyPatch, serve: Callable[[], object]) -> Iterator[None]:
    """From its first answers until it has ended."""
    servers: list[uvicorn.Server] = []
    run = uvicorn.Server.run

    def record(self: uvicorn.Server, sockets: list[socket.socket] | None = None) -> None:
        servers.append(self)
        run(self, sockets)

    monkeypatch.setattr(uvicorn.Server, "run", record)
    monkeypatch.setattr(uvicorn.Server, "install_signal_handlers", lambda _: None, raising=False)
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    until(lambda: bool(servers) and servers[0].started)
    yield
    servers[0].should_exit = True
    thread.join(20)
    assert not thread.is_alive()
