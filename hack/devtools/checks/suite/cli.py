"""The command line: ``python -m devtools.checks.suite [--parts NAMES | --quick] [--full]``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from devtools.checks.suite import parts, plan, results
from devtools.checks.suite.account import account, is_unsteady
from devtools.checks.suite.disk import Watch
from devtools.checks.suite.runner import Interrupted, Run
from devtools.paths import ROOT
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.process import exclusive
from devtools.testbed.base.settings import settings_from

FOLDER = ROOT / ".build" / "suite"

LIMIT, FULL_LIMIT = 75.0, 240.0
"""Minutes after which a run stops: cold caches take 36 of them to build, and the tests 15; --full adds the peers."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the suite; 0 if all of it passed, 130 if it was interrupted."""
    options = _parser().parse_args(argv)
    began = time.monotonic()
    try:
        lanes = plan.quick() if options.quick else plan.plan(parts.chosen(options.parts), options.full)
        # two would remove each other's logs, and stop each other's operators and clusters
        with exclusive(FOLDER.parent / "suite.lock", "another run of the tests in this checkout"):
            limit = 60 * (options.limit or (FULL_LIMIT if options.full else LIMIT))
            run = Run(lanes, settings_from(), FOLDER, _say, limit)
            with Watch(FOLDER, _say) as disk:
                run.run()
    except (ClusterError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except Interrupted:
        print("interrupted; all started processes are stopped", file=sys.stderr)
        return 130
    cases = results.read(run.results)
    print(f"\n{disk.line}")
    print(account(run.ended, cases, time.monotonic() - began))
    return 1 if any(step.status for step in run.ended) or is_unsteady(cases) else 0


def _say(text: str) -> None:
    # one write: print would write the line's end apart, and the lanes are threads
    print(f"{text}\n", end="", flush=True)


def _parser() -> argparse.ArgumentParser:
    names = "\n".join(f"  {part.name:<12} {part.about}" for part in parts.PARTS)
    parser = argparse.ArgumentParser(
        prog="python -m devtools.checks.suite",
        description="The test suite.",
        epilog=f"parts:\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--parts", default="", metavar="NAMES", help="only these, comma-separated (default: all)")
    which.add_argument("--quick", action="store_true", help="only the linters and the unit tests")
    parser.add_argument(
        "--limit", type=float, metavar="MINUTES", help=f"stop after them ({LIMIT:.0f}; {FULL_LIMIT:.0f} with --full)"
    )
    parser.add_argument("--full", action="store_true", help="also run the longest tests, which take minutes each")
    return parser
