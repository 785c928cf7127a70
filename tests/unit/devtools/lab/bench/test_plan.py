from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from devtools.lab.bench import peers, plan
from devtools.lab.bench.peers import Limits, Peer
from devtools.lab.bench.workloads import (
    AT_STARTUP,
    FULL,
    JOB_LABEL,
    OTHER_KINDS,
    QUICK,
    job,
    jobs,
    jobs_of,
    long_job,
    one_more_worker,
)


def peer(name: str, limits: Limits | None = None) -> Peer:
    return Peer(name, name, list, "ready", limits=limits or Limits())


A, B = peer("a"), peer("b", Limits(singles=1, jobs=6, replicas=0, heavy=False, lasting=False, once=plan.WORKLOADS))
ELECTS = replace(A, kinds=("TFJob",), standby="standing by")


def test_peers_take_turns_and_a_slow_one_runs_less() -> None:
    found = [(s.round, s.peer.name, s.workloads) for s in plan.sessions([B, A], 2)]
    assert found == [
        (1, "a", ("idle", "one job", "many jobs", "replicas")),
        (1, "a", ("alone", "most jobs", "change", "restart", "finished")),
        (1, "a", plan.LARGE),
        (1, "b", ("idle", "one job", "many jobs")),
        (2, "a", ("one job", "many jobs", "replicas")),
    ]


def test_a_group_that_is_slow_for_a_peer_comes_once_after_a_round() -> None:
    slow = peer("s", Limits(once=plan.HEAVY))
    found = [(s.round, s.peer.name) for s in plan.sessions([A, slow], 3, ("one job", "most jobs"))]
    assert found == [(1, "a"), (1, "s"), (1, "a"), (2, "s"), (2, "a"), (1, "s"), (3, "a"), (3, "s"), (3, "a")]
    assert [(s.round, s.peer.name) for s in plan.sessions([slow, A], 1, ("most jobs",))] == [(1, "a"), (1, "s")]


def test_peers_come_in_the_opposite_order_at_each_repetition() -> None:
    two = [peer("a"), peer("b")]
    found = [s.peer.name for s in plan.sessions(two, 4, ("one job",))]
    assert "".join(found) == "abbaabba"
    found = [s.peer.name for s in plan.sessions(two, 5, ("most jobs",))]
    assert "".join(found) == "abbaabba", "in the rounds 1, 3, 4 and 5"


def test_the_thousand_jobs_come_again_in_the_third_round() -> None:
    assert [s.workloads for s in plan.sessions([ELECTS], 3)][-2:] == [plan.HEAVY, plan.LARGE]


def test_who_takes_part() -> None:
    assert (plan.takes_part(ELECTS, plan.FAILOVER), plan.takes_part(A, plan.FAILOVER)) == (True, False)
    assert (plan.takes_part(ELECTS, plan.LONG), plan.takes_part(A, plan.LONG)) == (True, False)
    assert not plan.takes_part(peer("small", Limits(large=False)), plan.HUGE)
    taking = {workload: [p.name for p in peers.PEERS if plan.takes_part(p, workload)] for workload in plan.WORKLOADS}
    assert taking[plan.FAILOVER] == taking[plan.LONG] == [peers.OURS, peers.LIFTED]
    assert taking[plan.HUGE] == [peers.OURS, peers.BASELINE, peers.GO_BASELINE, peers.LIFTED]


def test_only_what_was_chosen() -> None:
    assert [s.workloads for s in plan.sessions([A], 1, ("one job",))] == [("one job",)]
    assert plan.workloads_named("one job, huge") == ("one job", "huge")
    assert plan.workloads_named("") == plan.WORKLOADS
    with pytest.raises(ValueError, match="there is no workload 'none'; the workloads are idle, "):
        plan.workloads_named("none")


def test_a_peer_gets_the_kinds_that_it_reconciles() -> None:
    assert not plan.takes_part(A, plan.KINDS)
    assert plan.takes_part(replace(A, kinds=("TFJob",)), plan.KINDS)
    kinds = {one.name: one.kinds for one in peers.PEERS if one.kinds}
    assert kinds[peers.OURS] == (*OTHER_KINDS, AT_STARTUP)
    assert set(OTHER_KINDS) - set(kinds[peers.DEFAULT]) == {"JAXJob"}


def test_a_launcher_at_once() -> None:
    (made,), pods = jobs_of(AT_STARTUP, "x", 1, nodes=1)
    assert (made["apiVersion"], made["kind"], pods) == ("kubeflow.org/v2beta1", "MPIJob", 2)
    assert made["spec"]["launcherCreationPolicy"] == "AtStartup"


def test_a_long_spec() -> None:
    spec = long_job("x", 1_500_000)["spec"]
    assert 1_500_000 <= len(json.dumps(spec, separators=(",", ":"))) < 1_501_000


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_jobs_of_another_kind(kind: str) -> None:
    made, pods = jobs_of(kind, "x", 3, nodes=2)
    assert [(one["kind"], one["metadata"]["name"]) for one in made] == [(kind, f"x-000{n}") for n in range(3)]
    assert pods == 2


def test_limits_of_a_peer() -> None:
    assert plan.count(100, None) == 100
    assert plan.count(100, 6) == 6
    assert plan.replica_sizes(A, FULL) == (200, 1000)
    assert plan.replica_sizes(B, FULL) == ()


def test_the_catalog() -> None:
    assert [p.name for p in peers.chosen("baseline,dljob-operator")] == ["dljob-operator", "baseline"]
    assert peers.chosen("") == peers.PEERS
    with pytest.raises(ValueError, match="there is no peer 'helm'"):
        peers.chosen("helm")
    assert len({p.name for p in peers.PEERS}) == len(peers.PEERS)


def test_a_real_ansible_operator_takes_part_where_there_is_one() -> None:
    assert peers.ansible_operator({}) == ()
    (peer,) = peers.ansible_operator({"DLJOB_ANSIBLE_OPERATOR": "/opt/ansible-operator"})
    assert peer.name == peers.ENGINE
    *_, binary, option, shim = peer.command()
    assert (binary, option) == ("/opt/ansible-operator", "--shim")
    assert Path(shim, "ansible-runner").is_file()


@pytest.mark.parametrize("pods", [3, 4, 1000])
def test_a_job_has_as_many_pods_as_asked_for(pods: int) -> None:
    replicas = job("a", pods)["spec"]["mxReplicaSpecs"]
    assert sum(r["replicas"] for r in replicas.values()) == pods


def test_a_job_is_not_smaller_than_a_parameter_server_cluster() -> None:
    with pytest.raises(ValueError, match="not 2 pods"):
        job("a", 2)


def test_jobs_are_spread_over_the_nodes() -> None:
    made = list(jobs("x", 5, nodes=2))
    names = [m["metadata"]["name"] for m in made]
    nodes = [m["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["nodeName"] for m in made]
    assert names == ["x-0000", "x-0001", "x-0002", "x-0003", "x-0004"]
    assert nodes == ["kwok-0000", "kwok-0001", "kwok-0000", "kwok-0001", "kwok-0000"]


def test_a_quick_run_fits_few_nodes() -> None:
    assert QUICK.most * 4 < 2 * 250
    assert one_more_worker(2) == {"spec": {"mxReplicaSpecs": {"Worker": {"replicas": 3}}}}
    assert JOB_LABEL == "training.kubeflow.org/job-name"
