"""The benchmark's harness, with every peer, in sizes that take minutes. Never a judgement on times."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench import account, cli, growth, plan
from bench.client import Client
from bench.measures import Sample
from bench.peers import catalog
from bench.session import Ground
from bench.workloads import QUICK
from cluster.settings import settings_from

pytestmark = pytest.mark.exclusive


def test_a_quick_run_measures_every_peer_in_every_workload(cluster: Path, crds: None, tmp_path: Path) -> None:
    output = tmp_path / "RESULTS.md"
    assert cli.main(["--quick", "--rounds", "1", "--minutes", "30", "--output", str(output)]) == 0
    samples = [Sample.from_json(s) for s in json.loads((cli.SCRATCH / "samples.json").read_text())["samples"]]
    measured = {(s.peer, s.workload) for s in samples}
    for peer in catalog.PEERS:
        for workload in plan.WORKLOADS:
            names = [workload]
            if workload == plan.REPLICAS:
                names = [f"{size} replicas" for size in plan.replica_sizes(peer, QUICK)]
            elif workload == plan.HUGE:
                names = [f"{QUICK.huge} replicas"]
            if plan.takes_part(peer, workload):
                assert {(peer.name, name) for name in names} <= measured
    for sample in samples:
        assert sample.complete, sample
        if sample.pods and sample.workload not in (plan.CHANGE, plan.RESTART):
            assert sample.pods_made == sample.pods, sample
            assert sample.writes >= sample.pods, sample
            assert sample.cpu > 0, sample
    text = output.read_text()
    assert all(peer.title in text for peer in catalog.PEERS)
    assert "**" in text or "yes" in text


def test_the_growth_in_small(cluster: Path, crds: None) -> None:
    nodes = cli.ensure_nodes(settings_from(), cli.QUICK_NODES)
    client = Client(cluster)
    cli.SCRATCH.mkdir(parents=True, exist_ok=True)
    account.prepare(client, cli.SCRATCH / "kubeconfig")
    try:
        ground = Ground(client, cli.SCRATCH / "kubeconfig", cli.SCRATCH, QUICK, nodes, print)
        found = growth.steps(growth.measure(ground))
    finally:
        account.remove(client)
    assert [step.jobs for step in found] == [*QUICK.growth]
    assert all(step.cpu > 0 and step.memory > 2**20 and step.latency > 0 for step in found)
    assert all(step.api_server_bytes > 2**20 and step.storage_bytes > 2**10 for step in found)
