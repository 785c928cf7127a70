"""`python -m devtools.lab.fuzz`: generated jobs against the operator on the local cluster.

The cases follow from the seed: `--seed N --only 17,42` sends two of them again, and writes no benchmarks/FUZZ.md. The
counts and a file per violation are in .build/fuzz.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from devtools.lab.bench import machine
from devtools.lab.bench.client import Refused
from devtools.lab.bench.peers.base import PeerFailed
from devtools.lab.fuzz import beside, report
from devtools.lab.fuzz.cases import Case, case
from devtools.lab.fuzz.run import Limits, Result, Run
from devtools.lab.load.ground import Ground, clear, left, prepared
from devtools.lab.load.operator import JOBS, Operator
from devtools.paths import ROOT
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.termination import ends_main_thread

FOLDER = ROOT / ".build" / "fuzz"
TABLE = ROOT / "benchmarks" / "FUZZ.md"
_NODES = 4
_ARGUMENTS = ("--max-replicas-per-job", "50")
"""Larger jobs are refused: the subject is the variety of objects, and not their pods."""


def main(argv: Sequence[str] | None = None) -> int:
    """0 without a violation, 1 with one or after an error. An interrupted run writes what it has."""
    options = _parser().parse_args(argv)
    if options.table is None and not options.only:
        options.table = TABLE
    result = Result()
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:5.0f} s {text}", flush=True)

    try:
        with ends_main_thread(), prepared(options.output, _NODES) as ground:
            try:
                result.facts = machine.facts(ground.client, ground.nodes)
                _fuzz(ground, options, result, say)
            finally:
                result.seconds = time.monotonic() - began
                report.write(result, options.seed, options.output)
                if options.table is not None:
                    options.table.write_text(report.document(result, _arguments(options)))
                print(report.table(result, options.seed), flush=True)
    except (KeyboardInterrupt, SystemExit):
        print("fuzz: interrupted; the report has what was done until then", file=sys.stderr)
        return 1
    except (ClusterError, PeerFailed, Refused, OSError) as error:  # TimeoutError is one of the last
        print(f"fuzz: {error}", file=sys.stderr)
        return 1
    return 1 if result.violations or not result.complete else 0


def _fuzz(ground: Ground, options: argparse.Namespace, result: Result, say: Callable[[str], None]) -> None:
    limits = Limits(answer=options.answer, delay=options.delay, batch=options.batch)
    with (
        ground.namespace("fuzz") as namespace,
        ground.namespace("fuzz-healthy") as healthy,
        Operator(ground.kubeconfig, ground.folder, _ARGUMENTS) as operator,
        beside.Beside(ground.client, healthy) as jobs,
    ):
        run = Run(ground, operator, namespace, limits, say)
        run.result = result
        result.undisturbed = jobs.undisturbed(options.healthy)
        say(f"a healthy job's first pod comes after {result.undisturbed.median.first_pod:.3f} s")
        run.remember_memory(0)
        jobs.start()
        try:
            run.run(_cases(ground, options), jobs)
        finally:
            jobs.stop()
            if jobs.times:
                result.disturbed = beside.summary(jobs.times)
            for lost in jobs.lost:
                run.violation("a healthy job did not run", lost, ())
        for where in (namespace, healthy):
            clear(ground, where, limits.gone)
            if remaining := left(ground, where):
                run.violation("objects that were not deleted", ", ".join(remaining), ())
        run.expect_no_jobs(JOBS)
        result.complete = True


def _cases(ground: Ground, options: argparse.Namespace) -> list[Case]:
    numbers = map(int, options.only.split(",")) if options.only else range(options.objects)
    return [case(ground.kinds, options.seed, number) for number in numbers]


def _arguments(options: argparse.Namespace) -> str:
    """The arguments that the objects and the limits follow from, without those that have their default."""
    given = [f"--seed {options.seed}", f"--only {options.only}" if options.only else f"--objects {options.objects}"]
    defaults = _parser().get_default
    others = [name for name in ("batch", "healthy", "delay", "answer") if getattr(options, name) != defaults(name)]
    return " ".join([*given, *(f"--{name} {getattr(options, name):g}" for name in others)])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m devtools.lab.fuzz", description=__doc__)
    add = parser.add_argument
    add("--seed", type=int, default=1, help="of the generator (default: %(default)s)")
    add("--objects", type=int, default=1000, help="number of objects (default: %(default)s)")
    add("--only", default="", metavar="NUMBERS", help="only these cases of the seed, comma-separated")
    add("--batch", type=int, default=50, help="objects that exist at a time (default: %(default)s)")
    add("--healthy", type=int, default=10, help="healthy jobs before the others, for comparison (default: %(default)s)")
    add(
        "--delay",
        type=float,
        default=1.0,
        metavar="SECONDS",
        help="by which a healthy job may be later (default: %(default)g)",
    )
    add(
        "--answer",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="until each job has an answer (default: %(default)g)",
    )
    add("--output", type=Path, default=FOLDER, metavar="DIR", help="folder of the data (default: .build/fuzz)")
    add("--table", type=Path, help="the report (default: benchmarks/FUZZ.md; with --only none)")
    return parser
