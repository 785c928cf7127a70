"""`python -m devtools.lab.soak`: many short jobs through one operator process on the local cluster.

It writes benchmarks/SOAK.md and docs/soak.svg, and the data of both to .build/soak/soak.json, from which `--draw`
writes them again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from devtools.lab.bench import machine
from devtools.lab.bench.client import Refused
from devtools.lab.bench.peers.base import PeerFailed
from devtools.lab.load.ground import clear, prepared
from devtools.lab.load.log import Log
from devtools.lab.load.operator import Operator
from devtools.lab.soak import report, samples
from devtools.lab.soak.in_turn import Compared, with_a_young_process
from devtools.lab.soak.mix import fitting
from devtools.lab.soak.run import Soak, Stalled
from devtools.paths import ROOT
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.termination import ends_main_thread

FOLDER = ROOT / ".build" / "soak"
TABLE = ROOT / "benchmarks" / "SOAK.md"
PICTURE = ROOT / "docs" / "soak.svg"
_NODES = 10


def main(argv: Sequence[str] | None = None) -> int:
    """0 if all jobs ended as they should and nothing has grown by more than its limit, else 1.

    An interrupted run writes what it has measured.
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
            compared: Compared | None = None
            with Soak(ground, operator, namespace, options.interval, say) as soak:
                try:
                    soak.run(options.jobs, fitting(ground.kinds), options.in_flight, options.limit)
                    compared = with_a_young_process(ground, soak, options.jobs, options.in_flight, options.limit, say)
                except (KeyboardInterrupt, SystemExit):
                    stopped = "interrupted"
                except (Stalled, PeerFailed) as error:
                    stopped = str(error)
            seconds = time.monotonic() - started - soak.resting_seconds
            try:
                clear(ground, namespace, 300)
            except (KeyboardInterrupt, SystemExit):
                stopped = stopped or "interrupted"  # what was measured is written all the same
            logged = [f"{what}: {line}" for what, line in Log(operator.log).unexpected()]
    done = soak.progress.done
    rows = samples.rows(soak.samples, done)
    found = {"wrong": soak.progress.wrong, "problems": soak.problems, "errors": soak.errors, "logged": logged}
    in_turn: list[samples.Row] = []
    seconds_in_turn = {}
    if compared is not None:
        first, last = soak.alone
        rows.append(samples.alone_row(first, last))
        in_turn = samples.in_turn_rows(compared.many, compared.single)
        seconds_in_turn = {name: samples.seconds(getattr(compared, name)) for name in ("many", "single")}
        found = {name: [*several, *getattr(compared, name)] for name, several in found.items()}
    return {
        "facts": facts,
        "summary": {
            "jobs": len(done), "wanted": options.jobs, "stopped": stopped, "seconds": seconds,
            "rate": len(done) / seconds, "in_flight": options.in_flight, "lives": soak.progress.lives, **found,
        },
        "rows": [asdict(row) for row in rows],
        "in_turn": [asdict(row) for row in in_turn],
        "seconds_in_turn": seconds_in_turn,
        "series": samples.series(soak.samples, done),
    }  # fmt: skip


def _write(measured: dict[str, Any], options: argparse.Namespace) -> int:
    summary = measured["summary"]
    rows, in_turn = ([samples.Row(**row) for row in measured[name]] for name in ("rows", "in_turn"))
    text = report.document(rows, in_turn, summary, measured["facts"])
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
    grown = [row for row in (*rows, *in_turn) if row.has_grown]
    for row in grown:
        print(f"soak: has grown by more than its limit: {row.name}", file=sys.stderr)
    return 1 if grown or summary["stopped"] or any(summary[name] for name in ("wrong", "problems", "logged")) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m devtools.lab.soak", description=__doc__)
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
