"""``dljob ui``."""

from __future__ import annotations

import argparse
import functools
import os
from pathlib import Path

from dljob.client import Client
from dljob.config import Config, of_token
from dljob.errors import Refused
from dljob.history import VARIABLE


def run(given: argparse.Namespace, client: Client) -> int:
    """Serve the page until Ctrl-C."""
    try:
        from dljob.web.serve import Content, serve
    except ImportError as e:
        raise _missing(e) from None
    say = functools.partial(print, flush=True)
    everywhere = not given.namespace and sees_all(client)
    if not everywhere:
        say(f"Only the jobs of the namespace {client.namespace} are shown.")
    try:
        content = Content(everywhere, given.history_database or os.environ.get(VARIABLE, ""))
        serve(client, given.port, browser=not given.no_browser, say=say, content=content)
    except OSError as e:
        raise Refused(f"Port {given.port} of 127.0.0.1 cannot be used: {e.strerror}.") from None
    return 0


def run_in_cluster(given: argparse.Namespace) -> int:
    """Serve the page to many users until SIGTERM."""
    try:
        from dljob.web.serve_cluster import serve
    except ImportError as e:
        raise _missing(e) from None
    if not given.host:
        raise Refused("--in-cluster needs --host: the name, or name:port, at which browsers reach the page.")

    def config_of(token: str) -> Config:
        return of_token(token, Path(given.ca))

    host, _, port = given.address.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise Refused(f"{given.address} is no address: write HOST:PORT, or :PORT.")
    config_of("none")  # a missing file ends the pod, rather than each login
    try:
        serve(config_of, (host.strip("[]"), int(port)), given.host, secure=not given.insecure_cookie)
    except OSError as e:
        raise Refused(f"{given.address} cannot be used: {e.strerror}.") from None
    return 0


def _missing(error: ImportError) -> Exception:
    """What to say, or the error itself where it is another."""
    if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn", "jinja2", "anyio"):
        return error
    return Refused("The page needs Starlette, uvicorn and Jinja2: pip install 'dljob[web]'.")


def sees_all(client: Client) -> bool:
    """Whether the user may list jobs of some kind in all namespaces. Raises DljobError where nothing may be listed."""
    found = client.list(all_namespaces=True)
    if found.problems and not found.items:
        client.list()
        return False
    return True
