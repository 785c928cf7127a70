"""Explores all scenarios and prints the figures: ``PYTHONPATH=tests python -m support.stability 100000``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from support.stability.campaign import explore, table
from support.stability.state import Violation


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("states", type=int, help="number of distinct states of all scenarios together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="part of the names of the scenarios to explore")
    given = parser.parse_args(arguments)
    try:
        print(table(explore(given.states, given.seed, given.only)))
    except Violation as violation:
        print(violation, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
