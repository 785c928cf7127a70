from __future__ import annotations

import pytest
from devtools.lab.bench import growth, plan
from devtools.lab.bench.measures import Sample
from devtools.lab.bench.workloads import QUICK, Sizes

MIB = 2**20


def three(jobs: int, seconds: float | None, *, cpu: float, memory: int) -> list[Sample]:
    extra = {"core_share": 0.004, "api_server_bytes": 600.0 * MIB, "storage_bytes": 80.0 * MIB}
    walls = {"wall": seconds and 0.8 * seconds, "wall_running": seconds}
    return [
        Sample(plan.GROWTH, "dljob-operator", 1, jobs, 4 * jobs, **walls, cpu=cpu, peak_bytes=memory),
        Sample(plan.IDLE, "dljob-operator", 1, 0, 0, extra=extra),
        Sample(plan.ONE, "dljob-operator", 1, 10, 40, all_pods=(0.05, 0.04, None, 0.9)),
    ]


RUN = [*three(99, 5.0, cpu=2.0, memory=160 * MIB), *three(190, 9.5, cpu=3.8, memory=180 * MIB)]


def test_a_step_counts_the_jobs_that_were_there_before() -> None:
    first, second = growth.steps(RUN)
    assert (first.jobs, first.added) == (100, 99)
    assert (second.jobs, second.added) == (300, 190)
    assert (second.seconds, second.cpu, second.latency, second.idle_share) == (9.5, 3.8, 0.05, 0.004)


def test_an_incomplete_step_is_dropped() -> None:
    assert len(growth.steps([*RUN, *three(700, None, cpu=9.0, memory=0)])) == 2


def test_memory_of_a_job_is_the_slope() -> None:
    assert growth.memory_of_a_job(growth.steps(RUN)) == 20 * MIB / 200


def test_the_table_has_the_cost_of_a_new_job() -> None:
    text = growth.document(growth.steps(RUN), {"machine": "two cores", "peers": "none"}, 4)
    assert "| 300 | 190 | 7.6 | 25.0 | 9.5 | 0.0200 | 180 | 0.050 | 0.4% | 600 | 80 |" in text
    assert "A further job takes 102.4 KiB" in text
    assert "Goal 13: 300 running jobs in at most 300 MiB: 180 MiB, yes." in text
    assert "two cores" in text and "peers" not in text


@pytest.mark.parametrize(("sizes", "nodes"), [(QUICK, 1), (Sizes(), 41)])
def test_there_are_nodes_for_all_pods(sizes: Sizes, nodes: int) -> None:
    assert growth.nodes_for(sizes) == nodes
