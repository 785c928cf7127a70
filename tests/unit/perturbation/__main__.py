"""Tries every perturbation at every position: ``PYTHONPATH=tests python -m unit.perturbation``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from unit.perturbation.campaign import Figures, every_position, total
from unit.perturbation.perturbations import EXHAUSTIVE, WINDOWS
from unit.perturbation.scenarios import scenarios


def main(arguments: Sequence[str] | None = None) -> int:
    """1 if some run ended otherwise than the undisturbed one, or if there is no such scenario."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of the names of the scenarios")
    parser.add_argument(
        "--all-windows", action="store_true", help="windows of one to ten events, not only the tests' one of four"
    )
    given = parser.parse_args(arguments)
    figures: list[Figures] = []
    for scenario in scenarios():
        if given.only in scenario.name:
            one = every_position(scenario, EXHAUSTIVE if given.all_windows else WINDOWS)
            figures.append(one)
            print(f"{one.name}: {one.positions} positions, {one.runs} runs, {len(one.differences)} differences")
            print("".join(f"  {found}\n" for found in one.differences), end="", flush=True)
    print(total(figures))
    return 1 if not figures or any(one.differences for one in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
