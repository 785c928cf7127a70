"""`python -m devtools.build.outdated`: a table of the pins, what could replace them, and when their lines end.

Exits with 1 where a registry did not answer, with 2 where pins.toml names a pin that is nowhere.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from devtools.build.outdated import registries
from devtools.build.outdated.pins import Pin, PinError, read, row
from devtools.paths import ROOT

HEAD = ("what", "pinned", "newest that fits", "newest", "end of life", "")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m devtools.build.outdated", description=__doc__)
    parser.add_argument("--all", action="store_true", help="also what is current and has no end of life")
    parser.add_argument("--offline", action="store_true", help="ask no registry: only the ends of life")
    options = parser.parse_args(argv)
    try:
        pins = read(ROOT)
    except PinError as error:
        print(f"outdated: {error}", file=sys.stderr)
        return 2
    with ThreadPoolExecutor(4) as pool:
        served = list(pool.map(_served, pins if not options.offline else ()))
    problems = [problem for _, problem in served if problem]
    today = datetime.now(UTC).date()
    found = [versions for versions, _ in served] or [[] for _ in pins]
    rows = [row(pin, versions, today) for pin, versions in zip(pins, found, strict=True)]
    shown = [one for one in rows if options.all or one[-1]]
    for line in _table([HEAD, *shown]):
        print(line)
    print(f"{len(rows)} pins, {len(rows) - len(shown)} of them current and not shown" if not options.all else "")
    for problem in problems:
        print(f"outdated: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _served(pin: Pin) -> tuple[list[str], str]:
    try:
        return registries.versions(pin), ""
    except registries.RegistryError as error:
        return [], str(error)


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(one, widths, strict=True)).rstrip() for one in rows]
