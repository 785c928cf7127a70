"""`python -m devtools.soak`: many short jobs through one operator process on the local cluster.

It writes benchmarks/SOAK.md and docs/soak.svg, and the data of both to .build/soak/soak.json, from which `--draw`
writes them again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import machine
from bench.client import Refused
from bench.peers.base import PeerFailed

from devtools.cluster.errors import ClusterError
from devtools.load.ground import Ground, clear, prepared
from devtools.load.log import Log
from devtools.load.operator import Operator
from devtools.soak import report, samples
from devtools.soak.mix import fitting, succeeding
from devtools.soak.progress import Done
from devtools.soak.run import Soak, Stalled, in_turn
from devtools.termination import ends_main_thread

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / ".build" / "soak"
TABLE = ROOT / "benchmarks" / "SOAK.md"
PICTURE = ROOT / "docs" / "soak.svg"
_NODES = 10


def main(argv: Sequence[str] | None = None) -> int:
    """0 if all jobs ended as they should and nothing has grown by more than its limit, else 1.

    Where the machine was busier at one end of the run than at the other, the latencies have no limit, and the report
    says so. An interrupted run writes what it has measured.
    """
    options = _parser().parse_args(argv)
    data = options.output / "soak.json"
    if not options.draw:
        try:
            with ends_main_thread():
                measured = _measure(options)
        except (KeyboardInterrupt, SystemExit):
            print("soak: interrupted", file=sys.stderr)
            return 1
        except (ClusterError, PeerFailed, Refused, ValueError, OSError) as error:
            print(f"soak: {error}", file=sys.stderr)
            return 1
        data.write_text(json.dumps(measured, indent=1))
    return _write(json.loads(data.read_text()), options)


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:5.0f} s {text}", flush=True)

    with prepared(options.output, _NODES) as ground, ground.namespace("soak") as namespace:
        facts = machine.facts(ground.client, ground.nodes)
        with Operator(ground.kubeconfig, ground.folder, ["--namespace", namespace]) as operator:
            say("the operator is ready")
            started = time.monotonic()
            stopped = ""
            compared: tuple[Sequence[Done], Sequence[Done]] | None = None
            with Soak(ground, operator, namespace, options.interval, say) as soak:
                try:
                    soak.run(options.jobs, fitting(ground.kinds), options.in_flight, options.limit)
                    compared = _beside_a_new_process(ground, soak, options, say)
                except (KeyboardInterrupt, SystemExit):
                    stopped = "interrupted"
                except (Stalled, PeerFailed) as error:
                    stopped = str(error)
            seconds = time.monotonic() - started - soak.alone_seconds
            try:
                clear(ground, namespace, 300)
            except (KeyboardInterrupt, SystemExit):
                stopped = stopped or "interrupted"  # what was measured is written all the same
            logged = [f"{what}: {line}" for what, line in Log(operator.log).unexpected()]
    done = soak.progress.done
    rows = samples.rows(soak.samples, done)
    if compared is not None:
        rows += [samples.alone_row(*soak.alone), samples.aged_row(*compared)]
    return {
        "facts": facts,
        "summary": {
            "jobs": len(done), "wanted": options.jobs, "stopped": stopped, "seconds": seconds,
            "rate": len(done) / seconds, "in_flight": options.in_flight, "lives": soak.progress.lives,
            "wrong": soak.progress.wrong, "problems": soak.problems, "errors": soak.errors,
            "logged": logged,
        },
        "rows": [asdict(row) for row in rows],
        "series": samples.series(soak.samples, done),
    }  # fmt: skip


def _beside_a_new_process(
    ground: Ground, aged: Soak, options: argparse.Namespace, say: Callable[[str], None]
) -> tuple[Sequence[Done], Sequence[Done]]:
    """Jobs that run one by one with a new process of the operator, warm, in turn with the ``aged`` one: its jobs, and
    those of the aged one. Each process has its own namespace.

    The cluster is the same for both, with all that the run has left in the API server's memory and in etcd.
    """
    kinds, count = fitting(ground.kinds), samples.alone(options.jobs)
    folder = ground.folder / "new"
    folder.mkdir(exist_ok=True)
    with (
        aged.resting(),
        ground.namespace("soak-new") as namespace,
        Operator(ground.kubeconfig, folder, ["--namespace", namespace]) as operator,
        Soak(ground, operator, namespace, options.interval, say) as new,
    ):
        say("a new process of the operator is ready")
        new.run_alone(succeeding(kinds, 3 * options.jobs, ground.nodes), count, options.limit)
        of_new, of_aged = in_turn((new, aged), succeeding(kinds, 4 * options.jobs, ground.nodes), count, options.limit)
        return of_new, of_aged


def _write(measured: dict[str, Any], options: argparse.Namespace) -> int:
    summary = measured["summary"]
    rows = [samples.Row(**row) for row in measured["rows"]]
    text = report.document(rows, summary, measured["facts"])
    options.table.write_text(text)
    report.draw(measured["series"], options.picture)
    print(text)
    for name in ("wrong", "problems", "logged", "errors"):
        for one in summary[name][:20]:
            print(f"soak: {name}: {one}", file=sys.stderr)
    if summary["stopped"]:
        print(
            f"soak: stopped after {summary['jobs']} of {summary['wanted']} jobs: {summary['stopped']}", file=sys.stderr
        )
    grown = report.grown(rows)
    for name in grown:
        print(f"soak: has grown by more than its limit: {name}", file=sys.stderr)
    return 1 if grown or summary["stopped"] or any(summary[name] for name in ("wrong", "problems", "logged")) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m devtools.soak", description=__doc__)
    add = parser.add_argument
    add("--jobs", type=int, default=2000, help="number of jobs (default: %(default)s)")
    add("--in-flight", type=int, default=40, metavar="N", help="jobs at a time (default: %(default)s)")
    add(
        "--limit",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="without a job's end, it fails (default: %(default)g)",
    )
    add("--interval", type=float, default=5.0, metavar="SECONDS", help="between two samples (default: %(default)g)")
    add("--output", type=Path, default=FOLDER, metavar="DIR", help="folder of the data (default: .build/soak)")
    add("--table", type=Path, default=TABLE, help="the table (default: benchmarks/SOAK.md)")
    add("--picture", type=Path, default=PICTURE, help="the plot (default: docs/soak.svg)")
    add("--draw", action="store_true", help="only write the table and the plot again, from the last run's data")
    return parser
