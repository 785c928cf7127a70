"""`python -m bench`: the whole benchmark, or as much of it as fits into the time limit."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.operator_defaults import positive

from devtools.lab.bench import account, machine, plan, report
from devtools.lab.bench.client import APPLY, Client, Refused
from devtools.lab.bench.measures import Sample
from devtools.lab.bench.peers import catalog, ours
from devtools.lab.bench.peers.base import Peer, PeerFailed
from devtools.lab.bench.session import BenchContext, Session
from devtools.lab.bench.summary import Samples
from devtools.lab.bench.workloads import FULL, QUICK, Sizes
from devtools.paths import ROOT
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.process import exclusive
from devtools.testbed.base.settings import Settings, settings_from
from devtools.testbed.base.termination import ends_main_thread
from devtools.testbed.cluster import lifecycle

RESULTS = ROOT / "benchmarks" / "RESULTS.md"
SCRATCH = ROOT / ".build" / "bench"
_LEAST = 20.0  # minimum remaining seconds to start another session
_SERVED = 60.0  # seconds for all definitions to be served


def main(argv: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    try:
        peers = catalog.chosen(options.peers, [ours.previous(options.previous.resolve())] if options.previous else [])
        workloads = plan.workloads_named(options.workloads)
    except ValueError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    SCRATCH.mkdir(parents=True, exist_ok=True)
    try:
        with exclusive(settings_from().load_lock, "another benchmark, or a load run,"), ends_main_thread():
            bench = _run(options, peers, workloads)
    except (ClusterError, ValueError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    finally:
        # written here, so that every way out says it: an error during the set-up may leave the cluster, too
        print("the cluster, if there is one, stays up for the next run: `make cluster-down` deletes it", flush=True)
    return 1 if bench.failed else 0


def _sizes(options: argparse.Namespace) -> Sizes:
    sizes = QUICK if options.quick else FULL
    return replace(sizes, beside=options.beside or sizes.beside)


def _run(options: argparse.Namespace, peers: Sequence[Peer], workloads: Sequence[str]) -> Bench:
    bench = Bench.on_cluster(_sizes(options), options.minutes, options.output)
    bench.peers = peers
    if options.resume:
        bench.resume(json.loads((SCRATCH / "samples.json").read_text()))
    for peer in peers:
        if peer.prepare is not None:
            bench.say(f"preparing {peer.name}")
            peer.prepare(settings_from().kubeconfig)
    try:
        bench.run([*plan.sessions(peers, options.rounds, workloads)])
    finally:
        for peer in peers:
            if peer.clean_up is not None:
                peer.clean_up()
    return bench


@dataclass
class Bench:
    """A run. It always writes its measurements, also after an interruption or a failure."""

    context: BenchContext
    output: Path
    facts: dict[str, str]
    samples: list[Sample] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    failed: bool = False
    peers: Sequence[Peer] = ()
    """Those of this run; the report names them besides the usual ones."""

    @classmethod
    def on_cluster(cls, sizes: Sizes, minutes: float, output: Path) -> Bench:
        settings = settings_from()
        lifecycle.up(settings)
        nodes = ensure_nodes(settings, sizes.nodes)
        install_crds(Client(settings.kubeconfig))
        client = Client(settings.kubeconfig)
        account.prepare(client, SCRATCH / "kubeconfig")
        context = BenchContext(
            client, SCRATCH / "kubeconfig", SCRATCH, sizes, nodes, lambda text: print(text, flush=True),
            time.monotonic() + 60 * minutes,
        )  # fmt: skip
        return cls(context, output, machine.facts(client, nodes))

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

    def run(self, sessions: Sequence[plan.Session]) -> None:
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
            account.remove(self.context.client)
            self.write()

    def _one(self, session: plan.Session, what: str) -> None:
        try:
            for sample in Session(self.context, session).run():
                self.samples.append(sample)
                self.write()
        except (PeerFailed, Refused, OSError) as error:  # TimeoutError and ConnectionError are of the last
            self.say(f"  failed: {error}")
            self.left_out.append(f"{what}: {str(error).splitlines()[0]}")
            self.failed = True

    def write(self) -> None:
        data = {"facts": self.facts, "left_out": self.left_out, "samples": [s.to_json() for s in self.samples]}
        (SCRATCH / "samples.json").write_text(json.dumps(data, indent=1))
        titles = {peer.name: peer.title for peer in (catalog.PEERS[0], *self.peers, *catalog.PEERS)}
        samples = Samples(self.samples)
        text = report.document(samples, titles, self.facts, self.context.sizes.replicas, self.left_out)
        self.output.write_text(text)
        self.output.with_suffix(".csv").write_text(report.as_csv(report.rows(samples, titles)))


def ensure_nodes(settings: Settings, least: int) -> int:
    """Ensure at least ``least`` simulated nodes in the running cluster; returns their number."""
    with lifecycle.locked(settings):
        session, _ = lifecycle.existing(settings)
        nodes = max(least, session.state.kwok_nodes)
        lifecycle.kwok_nodes(session, nodes)
    return nodes


def install_crds(client: Client) -> None:
    """Apply this project's definitions and wait until the API server answers for each of their versions.

    A new definition's first requests may get 404 (not yet served) or 429 (its watch cache is not yet filled).
    Raises TimeoutError after a minute.
    """
    collections = []
    for path in sorted((ROOT / "crds").glob("*.yaml")):
        url = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{path.stem}?fieldManager=dljob-bench&force=true"
        spec = client.request("PATCH", url, path.read_bytes(), APPLY)["spec"]
        collections += [
            f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}?limit=1"
            for version in spec["versions"]
            if version["served"]
        ]
    deadline = time.monotonic() + _SERVED
    for collection in collections:
        while (answer := client.raw("GET", collection))[0] != 200:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{collection}: {answer[0]}: {answer[1][:200].decode(errors='replace')}")
            time.sleep(0.1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    add = parser.add_argument
    add("--minutes", type=float, default=25.0, help="no session starts after this time (default: %(default)g)")
    add("--rounds", type=int, default=3, help="number of rounds, if there is time (default: %(default)s)")
    add(
        "--workloads",
        default="",
        metavar="NAMES",
        help=f"comma-separated, of: {', '.join(plan.WORKLOADS)} (default: all)",
    )
    add("--peers", default="", metavar="NAMES", help="comma-separated (default: all)")
    add("--previous", type=Path, metavar="CHECKOUT", help="the operator of this checkout is a peer too, named previous")
    add("--resume", action="store_true", help="add to the samples of the previous run, of the same commit")
    add("--beside", type=positive, default=0, metavar="N", help="jobs beside a large one (default: as --quick, or 500)")
    add("--quick", action="store_true", help="tiny sizes, to test the harness; the times are meaningless")
    add(
        "--output",
        type=Path,
        default=RESULTS,
        help="the report, with a CSV file beside it (default: benchmarks/RESULTS.md)",
    )
    return parser
