"""Serves the page in the cluster, for many users, until SIGTERM."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Sequence

from dljob.config import Config
from dljob.web.app import application
from dljob.web.gate import Gate
from dljob.web.hub import Hub
from dljob.web.serve import run
from dljob.web.sessions import Sessions

SWEEP_SECONDS = 5.0
_MOST_CONNECTIONS = 2000
"""Of which a new one ends one that waits; what has begun is limited by the requests."""


def serve(config_of: Callable[[str], Config], address: tuple[str, int], hosts: Sequence[str], *, secure: bool) -> None:
    """Answer at the address, "" for all of this machine. ``config_of`` gives the configuration for a viewer's token.

    Raises OSError for an address that cannot be used.
    """
    sessions = Sessions(config_of)
    hub = Hub(sessions)
    gate = Gate(application(), sessions, hub, hosts, secure=secure)
    stopped = threading.Event()

    def sweep() -> None:
        while not stopped.wait(SWEEP_SECONDS):
            sessions.sweep()
            hub.sweep()

    threading.Thread(target=sweep, daemon=True).start()
    try:
        with _listening(*address) as listening:
            # no one's address is of interest
            run(gate, listening, _MOST_CONNECTIONS, proxy_headers=False)
    finally:
        stopped.set()
        hub.close()


def _listening(host: str, port: int) -> socket.socket:
    if not host and socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
