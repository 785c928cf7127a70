"""The benchmark's harness, with every peer, in sizes that take minutes. Never a judgement on times."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from devtools.lab.bench import cli, growth, peers, plan
from devtools.lab.bench.measures import Sample
from devtools.lab.bench.peers import Peer
from devtools.lab.bench.session import BenchContext
from devtools.lab.bench.workloads import QUICK, of_kind, of_replicas
from devtools.testbed.ground import prepared

pytestmark = pytest.mark.exclusive


def quick_run(chosen: Sequence[Peer], output: Path) -> None:
    """A quick run of these peers, which must measure each in every workload that it takes part in."""
    names = ",".join(peer.name for peer in chosen)
    arguments = ["--quick", "--rounds", "1", "--minutes", "30", "--peers", names, "--output", str(output)]
    assert cli.main(arguments) == 0
    samples = [Sample.from_json(s) for s in json.loads((cli.SCRATCH / "samples.json").read_text())["samples"]]
    measured = {(s.peer, s.workload) for s in samples}
    for peer in chosen:
        for workload in plan.WORKLOADS:
            names_of_it = [workload]
            if workload == plan.REPLICAS:
                names_of_it = [of_replicas(size) for size in plan.replica_sizes(peer, QUICK)]
            elif workload == plan.KINDS:
                names_of_it = [of_kind(kind, QUICK.of_each_kind) for kind in peer.kinds]
            elif workload == plan.HUGE:
                names_of_it = [of_replicas(QUICK.large)]
            elif workload == plan.FAILOVER:
                names_of_it = [plan.FAILOVER, plan.HANDOVER]
            if plan.takes_part(peer, workload):
                assert {(peer.name, name) for name in names_of_it} <= measured
    for sample in samples:
        assert sample.complete, sample
        if sample.pods and sample.workload not in (plan.CHANGE, plan.RESTART, plan.FAILOVER, plan.HANDOVER):
            assert sample.pods_made == sample.pods, sample
            assert sample.writes >= sample.pods, sample
    # In sum: the kernel counts processor time in ticks of 10 ms, and the baseline needs less for two jobs.
    for peer in chosen:
        assert sum(sample.cpu for sample in samples if sample.peer == peer.name) > 0, peer.name
    text = output.read_text()
    assert all(peer.title in text for peer in chosen)
    assert "**" in text or "yes" in text
    assert all(peer.title in output.with_suffix(".csv").read_text() for peer in chosen)


def test_a_quick_run_measures_this_operator_and_the_baseline_in_every_workload(
    cluster: Path, crds: None, tmp_path: Path
) -> None:
    quick_run(peers.chosen(f"{peers.OURS},{peers.BASELINE}"), tmp_path / "RESULTS.md")


@pytest.mark.full
def test_a_quick_run_measures_every_peer_in_every_workload(cluster: Path, crds: None, tmp_path: Path) -> None:
    """The others are compiled, or slow: minutes in all."""
    quick_run(peers.PEERS, tmp_path / "RESULTS.md")


def test_the_growth_in_small(cluster: Path, crds: None) -> None:
    with prepared(cli.SCRATCH, QUICK.nodes) as ground:
        found = growth.steps(growth.measure(BenchContext(ground, QUICK, print)))
    assert [step.jobs for step in found] == [*QUICK.growth]
    assert all(step.memory > 2**20 and step.latency > 0 for step in found)
    assert sum(step.cpu for step in found) > 0, "in ticks of 10 ms, of which a step of a few jobs may need none"
    assert all(step.api_server_bytes > 2**20 and step.storage_bytes > 2**10 for step in found)
