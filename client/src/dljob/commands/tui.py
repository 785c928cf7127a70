"""``dljob tui``."""

from __future__ import annotations

import argparse
import sys

from dljob.client import Client
from dljob.errors import Refused
from dljob.output import printable, rescue


def run(given: argparse.Namespace, client: Client) -> int:
    """Show the terminal view until the user leaves it."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Refused("The terminal view needs a terminal: use `dljob list -w` here.")
    try:
        from dljob.tui.app import JobsApp
    except ImportError as e:
        if not (e.name or "").startswith(("textual", "rich")):
            raise
        raise Refused("The terminal view needs Textual: pip install 'dljob[tui]'.") from None
    where = {"all_namespaces": given.all_namespaces, "selector": given.selector}
    client.list(given.kind, **where)  # what is wrong is an error here, and not a line in the view
    app = JobsApp(client, lambda stop: client.watch(given.kind, stop=stop, **where))
    app.run()
    for error in app.lost:
        print(f"error: {printable(error)}\n{rescue(error)}", file=sys.stderr)
    return app.return_code or 0
