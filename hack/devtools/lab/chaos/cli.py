"""``python -m devtools.lab.chaos``: a run on the local cluster, which it starts if none is up."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path

from devtools.lab.chaos import report, workload
from devtools.lab.chaos.report import Result
from devtools.lab.chaos.run import RULES, Options, Run
from devtools.lab.chaos.upstream import Refused
from devtools.paths import ROOT
from devtools.testbed.base import gobuild
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.process import exclusive
from devtools.testbed.base.settings import Settings, settings_from
from devtools.testbed.base.termination import ends_main_thread
from devtools.testbed.cluster import lifecycle

RESULTS = ROOT / "benchmarks" / "CHAOS.md"
SCRATCH = ROOT / ".build" / "chaos"


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m devtools.lab.chaos", description=__doc__)
    add = top.add_argument
    add("--seed", type=int, default=1, help="determines the faults and the jobs (default: %(default)s)")
    add("--faults", type=int, default=1000, help="number of faults (default: %(default)s)")
    add("--minutes", type=float, default=40.0, help="no round starts after this time (default: %(default)g)")
    add("--jobs", type=int, default=20, help="jobs in each round (default: %(default)s)")
    add(
        "--shapes",
        action="append",
        default=[],
        metavar="WORD",
        help="only jobs whose title in shapes.py contains this word; may occur several times",
    )
    add("--output", type=Path, default=RESULTS, help="the report; beside it in .build/chaos: result.json, logs")
    return top


def facts() -> dict[str, str]:
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "log", "-1", "--format=%h"], capture_output=True, text=True, check=False
    )
    cores = len(os.sched_getaffinity(0))
    return {"this operator": commit.stdout.strip() or "unknown", "machine": f"{cores} cores, {platform.machine()}"}


def kwok_program(settings: Settings) -> Path:
    """kwok, compiled if necessary. Starts the cluster if it is not up."""
    return lifecycle.compiled(settings, gobuild.KWOK, "kwok")


def write(result: Result, output: Path) -> None:
    (SCRATCH / "result.json").write_text(json.dumps(result.to_json(), indent=1))
    output.write_text(report.document(result, RULES))


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    try:
        # a benchmark or a soak would measure the restarts of the API server
        with exclusive(settings_from().load_lock, "a benchmark or another load run"):
            return chaos(arguments)
    except ClusterError as error:
        print(f"chaos: {error}", file=sys.stderr)
        return 1


def chaos(arguments: argparse.Namespace) -> int:
    """Run, and write the report. Returns the exit status."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    for old in SCRATCH.glob("*.log"):
        old.unlink()
    result = Result(arguments.seed, arguments.faults, arguments.minutes, facts())
    try:
        with ends_main_thread():
            settings = settings_from()
            options = Options(
                settings, kwok_program(settings), SCRATCH, f"chaos-{uuid.uuid4().hex[:6]}",
                arguments.seed, arguments.faults, arguments.minutes, arguments.jobs,
                workload.titled(*arguments.shapes), lambda text: print(text, flush=True),
            )  # fmt: skip
            Run(options, result).run()
    except (ClusterError, Refused, OSError) as error:
        result.problems.append(str(error))
        print(f"chaos: {error}", file=sys.stderr)
    except (KeyboardInterrupt, SystemExit):
        result.problems.append("the run was interrupted")
        raise
    finally:
        write(result, arguments.output)
    print(f"{result.total} faults injected, {len(result.violations)} violations; see {arguments.output}")
    print("\n".join(f"  {count:5} {kind}" for kind, count in sorted(result.injected.items())))
    return 0 if result.good else 1
