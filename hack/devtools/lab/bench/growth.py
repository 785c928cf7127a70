"""`python -m devtools.lab.bench.growth`: this operator's cost by number of running jobs, up to ten thousand.

It uses a separate cluster and deletes it, because deleting forty thousand pods takes longer than creating them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from devtools.lab import command
from devtools.lab.bench import cli, measures, peers, plan, plots
from devtools.lab.bench.measures import Sample, known, percentile
from devtools.lab.bench.session import BenchContext, Session
from devtools.lab.bench.workloads import FULL, SMALLEST, Sizes
from devtools.paths import ROOT
from devtools.testbed import machine
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.settings import settings_from
from devtools.testbed.base.termination import ends_main_thread
from devtools.testbed.cluster import lifecycle
from devtools.testbed.ground import prepared
from devtools.testbed.report import listed, table

TABLE = ROOT / "benchmarks" / "GROWTH.md"
PICTURE = ROOT / "docs" / "growth.svg"
SAMPLES = cli.SCRATCH / "growth.json"
_PODS_OF_A_NODE = 1000  # nodeName bypasses the scheduler's limit; more nodes would add heartbeat writes
_MOST_MIB = 300
_TIMEOUT = 1800.0  # timeout in seconds of the largest step


@dataclass(frozen=True)
class Step:
    """``jobs`` run at the end of the step, ``added`` of them since the previous step. Seconds and bytes."""

    jobs: int
    added: int
    made: float
    """From the first new job's acceptance until the last one's pods exist."""
    seconds: float
    """Until the last one runs, which depends on kwok."""
    cpu: float
    """CPU seconds of the operator for the ``added`` jobs."""
    memory: int
    """The operator's peak memory so far."""
    latency: float
    """From the acceptance of one additional job until its pods exist, p50."""
    idle_share: float
    """Share of one core while nothing changes."""
    api_server_bytes: float
    storage_bytes: float


def steps(samples: Sequence[Sample]) -> list[Step]:
    """A step has three samples: jobs created at once, idle seconds, jobs created one by one. Pure."""
    found, present = [], 1  # the warm-up job
    for bulk, idle, singles in zip(samples[0::3], samples[1::3], samples[2::3], strict=True):
        if bulk.wall is None or bulk.wall_running is None:
            break  # stopped early: an incomplete step is dropped
        present += bulk.jobs
        found.append(
            Step(
                present, bulk.jobs, bulk.wall, bulk.wall_running, bulk.cpu, bulk.peak_bytes,
                percentile(known(singles.all_pods), 0.5), idle.extra["core_share"],
                idle.extra["api_server_bytes"], idle.extra["storage_bytes"],
            )
        )  # fmt: skip
        present += singles.jobs
    return found


def memory_of_a_job(found: Sequence[Step]) -> float:
    """Bytes per additional job: the slope from the first step to the last."""
    first, last = found[0], found[-1]
    return (last.memory - first.memory) / (last.jobs - first.jobs)


def document(found: Sequence[Step], facts: dict[str, str], pods: int) -> str:
    """GROWTH.md."""
    mib = 2**20
    head = (
        "jobs running", "new", "until all pods exist, s", "new jobs a second", "until all run, s", "CPU s a new job",
        "operator, peak MiB", "one more job: all pods p50, s", "idle, of a core", "API server, MiB", "etcd, MiB",
    )  # fmt: skip
    rows = (
        (
            f"{s.jobs:,}", f"{s.added:,}", f"{s.made:.1f}", f"{s.added / s.made:.1f}", f"{s.seconds:.1f}",
            f"{s.cpu / s.added:.4f}", f"{s.memory / mib:.0f}", measures.seconds(s.latency),
            f"{100 * s.idle_share:.1f}%", f"{s.api_server_bytes / mib:.0f}", f"{s.storage_bytes / mib:.0f}",
        )
        for s in found
    )  # fmt: skip
    lines = [
        "# Cost by number of jobs",
        "",
        f"Written by `make bench-growth`: an increasing number of running jobs of {pods} pods each, in one run",
        "on one machine. Each row covers the jobs added since the previous row; after them nothing changed for",
        "ten seconds, and then some more jobs were created one by one.",
        "",
        *listed({key: value for key, value in facts.items() if key != "peers"}),
        "",
        *table(head, rows),
        "",
    ]
    if found:
        memory = found[-1].memory / mib
        verdict = "yes" if memory <= _MOST_MIB else "**no**"
        lines += [
            f"Goal 13: {found[-1].jobs:,} running jobs in at most {_MOST_MIB} MiB: {memory:.0f} MiB, {verdict}.",
            "",
        ]
    if len(found) > 1:
        lines += [f"A further job takes {memory_of_a_job(found) / 1024:.1f} KiB of the operator's memory.", ""]
    return "\n".join(lines)


def draw(found: Sequence[Step], path: Path) -> None:
    """Plot the table."""
    jobs = [step.jobs for step in found]
    total, spent, seconds, cpu = 0.0, 0.0, [], []
    for step in found:
        total, spent = total + step.made, spent + step.cpu
        seconds.append(total)
        cpu.append(spent)
    panels = (
        ("until all pods exist, s (in all)", seconds),
        ("CPU of the operator, s (in all)", cpu),
        ("memory of the operator, MiB", [step.memory / 2**20 for step in found]),
        ("one more job: all pods, ms", [1000 * step.latency for step in found]),
    )
    curves = [plots.Panel(title, (plots.Line(jobs, values),)) for title, values in panels]
    plots.draw(curves, "jobs running", path)


def measure(context: BenchContext) -> list[Sample]:
    """All samples, each written to ``SAMPLES`` as soon as it is available."""
    peer = replace(peers.PEERS[0], limits=peers.Limits(timeout=_TIMEOUT))
    samples: list[Sample] = []
    for sample in Session(context, plan.Planned(peer, 1, (plan.GROWTH,))).run():
        samples.append(sample)
        SAMPLES.write_text(json.dumps([s.to_json() for s in samples], indent=1))
    return samples


def nodes_for(sizes: Sizes) -> int:
    """Number of simulated nodes for all pods of the largest step, and of the jobs created one by one."""
    jobs = max(sizes.growth) + len(sizes.growth) * sizes.singles + 1
    return -(-jobs * SMALLEST // _PODS_OF_A_NODE)


def main(argv: Sequence[str] | None = None) -> int:
    parser = command.parser("bench.growth", __doc__)
    add = parser.add_argument
    add("--most", type=int, default=max(FULL.growth), help="final number of jobs")
    add("--draw", action="store_true", help="only write the table and the plot again, from the last run's samples")
    options = parser.parse_args(argv)
    cli.SCRATCH.mkdir(parents=True, exist_ok=True)
    facts_path = SAMPLES.with_suffix(".facts.json")
    if not options.draw:
        settings = settings_from()
        if lifecycle.exists(settings):
            print(
                "it creates and deletes a cluster; run `make cluster-down` first",
                file=sys.stderr,
            )
            return 1
        growth = tuple(n for n in FULL.growth if n <= options.most)
        sizes = replace(FULL, growth=growth)
        try:
            with ends_main_thread():
                _on_a_separate_cluster(sizes, facts_path)
        except (ClusterError, subprocess.CalledProcessError, OSError) as error:
            print(f"devtools.lab.bench.growth: {error}", file=sys.stderr)
            return 1
    found = steps([Sample.from_json(s) for s in json.loads(SAMPLES.read_text())])
    TABLE.write_text(document(found, json.loads(facts_path.read_text()), SMALLEST))
    draw(found, PICTURE)
    print(TABLE.read_text())
    return 0


def _on_a_separate_cluster(sizes: Sizes, facts_path: Path) -> None:
    try:
        with prepared(cli.SCRATCH, nodes_for(sizes)) as ground:
            facts_path.write_text(json.dumps(machine.facts(ground.client, ground.nodes)))
            measure(BenchContext(ground, sizes, command.speaker(), throwaway=True))
    finally:
        lifecycle.down(settings_from())


if __name__ == "__main__":
    sys.exit(main())
