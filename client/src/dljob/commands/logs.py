"""``dljob logs``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from dljob.client import Client
from dljob.logs import Choice
from dljob.logs.show import Printer
from dljob.output import colors_wanted


def run(given: argparse.Namespace, client: Client, tell: Callable[[str], None]) -> int:
    """Print the lines; ``tell`` gets a sentence for each log that cannot be read."""
    choice = Choice(
        replicas=tuple(given.replicas),
        containers=tuple(given.container),
        all_containers=given.all_containers,
        previous=given.previous,
        since_seconds=None if given.since is None else int(given.since),
        tail=given.tail,
        unsorted=given.unsorted,
    )
    printer = Printer(
        sys.stdout,
        colored=colors_wanted(sys.stdout),
        form=given.output or "",
        timestamps=given.timestamps,
        pattern=given.grep,
    )
    at_once = given.follow or given.unsorted
    for line in client.logs(given.job, choice=choice, follow=given.follow, tell=tell):
        printer.print(line)
        if at_once:
            printer.flush()
            at_once = given.follow  # else the first line only
    return 0
