"""``dljob ui``."""

from __future__ import annotations

import argparse
import functools

from dljob.client import Client
from dljob.errors import Refused


def run(given: argparse.Namespace, client: Client) -> int:
    """Serve the page until Ctrl-C."""
    try:
        from dljob.web.serve import serve
    except ImportError as e:
        if (e.name or "").partition(".")[0] not in ("starlette", "uvicorn", "jinja2", "anyio"):
            raise
        raise Refused("The page needs Starlette, uvicorn and Jinja2: pip install 'dljob[web]'.") from None
    say = functools.partial(print, flush=True)
    everywhere = not given.namespace and sees_all(client)
    if not everywhere:
        say(f"Only the jobs of the namespace {client.namespace} are shown.")
    try:
        serve(client, given.port, browser=not given.no_browser, say=say, all_namespaces=everywhere)
    except OSError as e:
        raise Refused(f"Port {given.port} of 127.0.0.1 cannot be used: {e.strerror}.") from None
    return 0


def sees_all(client: Client) -> bool:
    """Whether the user may list jobs of some kind in all namespaces. Raises DljobError where nothing may be listed."""
    found = client.list(all_namespaces=True)
    if found.problems and not found.items:
        client.list()
        return False
    return True
