"""`python -m devtools.lab.bench`: the whole benchmark, or as much of it as fits into the time limit."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.settings import positive

from devtools.build.collection import dependencies
from devtools.lab import command
from devtools.lab.bench import peers, plan, report, tools, training_operator
from devtools.lab.bench.measures import Sample, Samples
from devtools.lab.bench.peers import Peer
from devtools.lab.bench.session import BenchContext, Session
from devtools.lab.bench.workloads import FULL, QUICK, Sizes
from devtools.paths import ROOT
from devtools.testbed import machine
from devtools.testbed.base.settings import settings_from
from devtools.testbed.client import Refused
from devtools.testbed.ground import Ground, prepared
from devtools.testbed.operator import OperatorError
from devtools.testbed.report import as_csv

RESULTS = ROOT / "benchmarks" / "RESULTS.md"
SCRATCH = ROOT / ".build" / "bench"
_LEAST = 20.0  # minimum remaining seconds to start another session


def main(argv: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    try:
        more = [peers.previous(options.previous.resolve())] if options.previous else []
        chosen = peers.chosen(options.peers, more)
        workloads = plan.workloads_named(options.workloads)
    except ValueError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    sizes = QUICK if options.quick else FULL
    sizes = replace(sizes, beside=options.beside or sizes.beside)
    failed = False

    def run() -> None:
        nonlocal failed
        with prepared(SCRATCH, sizes.nodes) as ground:
            bench = Bench(_context(ground, sizes, options.minutes), options.output, facts(ground), chosen)
            if options.resume:
                bench.resume(json.loads((SCRATCH / "samples.json").read_text()))
            with _prepared(chosen):
                bench.run([*plan.sessions(chosen, options.rounds, workloads)])
            failed = bench.failed

    is_done = command.done("bench", run)
    # whatever happened: an error during the set-up may leave the cluster, too
    print("the cluster, if there is one, stays up for the next run: `make cluster-down` deletes it", flush=True)
    return 0 if is_done and not failed else 1


@contextmanager
def _prepared(chosen: Sequence[Peer]) -> Iterator[None]:
    try:
        for peer in chosen:
            peer.prepare(settings_from().kubeconfig)
        yield
    finally:
        for peer in chosen:
            peer.clean_up()


def _context(ground: Ground, sizes: Sizes, minutes: float) -> BenchContext:
    return BenchContext(ground, sizes, lambda text: print(text, flush=True), time.monotonic() + 60 * minutes)


def facts(ground: Ground) -> dict[str, str]:
    """Those of the machine, and the versions of the peers."""
    versions = f"training-operator {training_operator.VERSION}, {tools.KOPF.replace('==', ' ')}"
    library = dependencies.PACKAGE.replace("==", " ")
    return {**machine.facts(ground.client, ground.nodes), "peers": f"{versions}, kubernetes.core of {library}"}


@dataclass
class Bench:
    """A run. It always writes its measurements, also after an interruption or a failure."""

    context: BenchContext
    output: Path
    facts: dict[str, str]
    peers: Sequence[Peer] = ()
    """Those of this run; the report names them besides the usual ones."""
    samples: list[Sample] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    failed: bool = False

    def say(self, text: str) -> None:
        self.context.say(text)

    def resume(self, data: dict[str, Any]) -> None:
        """Continue from the results of an earlier run. Raises ValueError if they are from another commit."""
        before, now = (facts["this operator"] for facts in (data["facts"], self.facts))
        if before != now:
            raise ValueError(f"--resume: the results are for {before}, and this is {now}: omit --resume")
        self.facts = {**data["facts"], "in one go": "no: some of it in further runs right after (`--resume`)"}
        self.samples = [Sample.from_json(sample) for sample in data["samples"]]
        self.left_out = [f"in the run before: {one}" for one in data["left_out"]]

    def run(self, sessions: Sequence[plan.Planned]) -> None:
        try:
            for session in sessions:
                what = f"round {session.round}, {session.peer.name}: {', '.join(session.workloads)}"
                if time.monotonic() + _LEAST > self.context.deadline:
                    self.left_out.append(f"{what}: no time left")
                    continue
                self.say(what)
                self._one(session, what)
        except (KeyboardInterrupt, SystemExit):
            self.left_out.append("the run was interrupted")
            self.failed = True
        finally:
            self.write()

    def _one(self, session: plan.Planned, what: str) -> None:
        try:
            for sample in Session(self.context, session).run():
                self.samples.append(sample)
                self.write()
        except (OperatorError, Refused, OSError) as error:  # TimeoutError and ConnectionError are of the last
            self.say(f"  failed: {error}")
            self.left_out.append(f"{what}: {str(error).splitlines()[0]}")
            self.failed = True

    def write(self) -> None:
        data = {"facts": self.facts, "left_out": self.left_out, "samples": [s.to_json() for s in self.samples]}
        (SCRATCH / "samples.json").write_text(json.dumps(data, indent=1))
        titles = {peer.name: peer.title for peer in (peers.PEERS[0], *self.peers, *peers.PEERS)}
        samples = Samples(self.samples)
        text = report.document(samples, titles, self.facts, self.context.sizes, self.left_out)
        self.output.write_text(text)
        rows = report.rows(samples, titles)
        self.output.with_suffix(".csv").write_text(as_csv(list(rows[0]) if rows else [report.WORKLOAD], rows))


def _parser() -> argparse.ArgumentParser:
    parser = command.parser("bench", __doc__)
    add = parser.add_argument
    add("--minutes", type=float, default=25.0, help="no session starts after this time")
    add("--rounds", type=int, default=3, help="number of rounds, if there is time")
    names = ", ".join(plan.WORKLOADS)
    add("--workloads", default="", metavar="NAMES", help=f"comma-separated, of: {names} (default: all)")
    add("--peers", default="", metavar="NAMES", help="comma-separated (default: all)")
    add("--previous", type=Path, metavar="CHECKOUT", help="the operator of this checkout is a peer too, named previous")
    add("--resume", action="store_true", help="add to the samples of the previous run, of the same commit")
    add("--beside", type=positive, default=0, metavar="N", help="jobs beside a large one (default: as --quick, or 500)")
    add("--quick", action="store_true", help="tiny sizes, to test the harness; the times are meaningless")
    add("--output", type=Path, default=RESULTS, help="the report, with a CSV file beside it")
    return parser
