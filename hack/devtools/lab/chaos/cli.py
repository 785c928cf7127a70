"""``python -m devtools.lab.chaos``: a run on the local cluster, which it starts if none is up."""

from __future__ import annotations

import argparse
import json
import os
import platform
import uuid
from collections.abc import Sequence
from pathlib import Path

from devtools.lab import command
from devtools.lab.chaos import report, workload
from devtools.lab.chaos.report import Result
from devtools.lab.chaos.run import Run
from devtools.lab.chaos.settling import RULES
from devtools.paths import ROOT
from devtools.testbed import machine
from devtools.testbed.base import gobuild
from devtools.testbed.base.process import exclusive
from devtools.testbed.base.settings import Settings, settings_from
from devtools.testbed.cluster import lifecycle

RESULTS = ROOT / "benchmarks" / "CHAOS.md"
SCRATCH = ROOT / ".build" / "chaos"


def main(argv: Sequence[str] | None = None) -> int:
    """1 after a violation or an incomplete run, else 0."""
    options = _parser().parse_args(argv)
    result = Result(options.seed, options.faults, options.minutes)
    done = command.done("chaos", lambda: _chaos(options, result))
    return 0 if done and result.good else 1


def _chaos(options: argparse.Namespace, result: Result) -> None:
    settings = settings_from()
    # a benchmark or a soak would measure the restarts of the API server
    with exclusive(settings.load_lock, "a benchmark or another load run"):
        SCRATCH.mkdir(parents=True, exist_ok=True)
        for old in SCRATCH.glob("*.log"):
            old.unlink()
        result.facts = {
            "this operator": machine.commit() or "unknown",
            "machine": f"{len(os.sched_getaffinity(0))} cores, {platform.machine()}",
        }
        try:
            run = Run(settings, result, SCRATCH, options.jobs, workload.titled(*options.shapes))
            run.run(kwok_program(settings), f"chaos-{uuid.uuid4().hex[:6]}")
        except BaseException as error:
            interrupted = isinstance(error, (KeyboardInterrupt, SystemExit))
            result.problems.append("the run was interrupted" if interrupted else str(error))
            raise
        finally:
            (SCRATCH / "result.json").write_text(json.dumps(result.to_json(), indent=1))
            options.output.write_text(report.document(result, RULES))
    print(f"{result.total} faults injected, {len(result.violations)} violations; see {options.output}")
    print("\n".join(f"  {count:5} {kind}" for kind, count in sorted(result.injected.items())))


def kwok_program(settings: Settings) -> Path:
    """kwok, compiled if necessary. Starts the cluster if it is not up."""
    return lifecycle.compiled(settings, gobuild.KWOK, "kwok")


def _parser() -> argparse.ArgumentParser:
    parser = command.parser("chaos", __doc__)
    add = parser.add_argument
    add("--seed", type=int, default=1, help="determines the faults and the jobs")
    add("--faults", type=int, default=1000, help="number of faults")
    add("--minutes", type=float, default=40, help="no round starts after this time")
    add("--jobs", type=int, default=20, help="jobs in each round")
    about = "only jobs whose title in jobs.yaml contains this word; may occur several times"
    add("--shapes", action="append", default=[], metavar="WORD", help=about)
    add("--output", type=Path, default=RESULTS, help="the report; in .build/chaos are result.json and logs")
    return parser
