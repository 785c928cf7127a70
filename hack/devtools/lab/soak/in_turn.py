"""The aged process of the operator in turn with a young one, on the same cluster.

The first and the last jobs of a run are so far apart that the machine's speed may differ by more than the limits of
growth. Jobs that both processes run in turn meet the same machine, and the same API server with all that the run has
left in its memory and in etcd: what differs is the age of the operator.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from devtools.lab.soak.mix import SoakJob, fitting, job, succeeding
from devtools.lab.soak.progress import Done
from devtools.lab.soak.run import Soak
from devtools.lab.soak.samples import Pair, window
from devtools.testbed.ground import Ground
from devtools.testbed.log import Log
from devtools.testbed.operator import ProbedOperator

_BLOCKS = 8
"""Turns of each process with many jobs at a time: an even number, so that each is the first of them equally often."""


@dataclass(frozen=True)
class Compared:
    """``many`` jobs at a time, and ``single`` ones. ``wrong``, ``problems``, ``logged`` and ``errors`` are of the young
    process, as those of the run are of the aged one."""

    many: Pair
    single: Pair
    wrong: Sequence[str]
    problems: Sequence[str]
    logged: Sequence[str]
    errors: Sequence[str]


def with_a_young_process(
    ground: Ground, aged: Soak, jobs: int, in_flight: int, limit: float, say: Callable[[str], None]
) -> Compared:
    """Start a process of the operator, run as many jobs through it as the ``aged`` one had run when its first window
    began, and run more through both in turn, each in its own namespace.

    ``jobs`` is the number of those that the aged process has run. Raises as Soak.run does.
    """
    kinds, nodes, size = fitting(ground.kinds), ground.nodes, window(jobs)
    folder = ground.folder / "young"
    folder.mkdir(exist_ok=True)
    with (
        aged.resting(),
        ground.namespace("soak-young") as namespace,
        ProbedOperator(ground.kubeconfig, folder, ["--namespace", namespace]) as operator,
        Soak(ground, operator, namespace, 0.0, say) as young,
    ):
        say(f"a young process of the operator runs {size} jobs")
        young.run_many((job(kinds, number, nodes) for number in range(size)), in_flight, limit, apart=True)
        say("both processes run jobs in turn")
        starts = range(10 * jobs, 10 * jobs + 2 * size, max(1, 2 * size // _BLOCKS))  # numbers without a job so far
        blocks = ([job(kinds, number, nodes) for number in range(start, start + starts.step)] for start in starts)
        many = in_turn((young, aged), blocks, in_flight, limit)
        single = itertools.islice(succeeding(kinds, 3 * jobs, nodes), size)
        singly = in_turn((young, aged), ([one] for one in single), 1, limit)
        problem = operator.problem()
        logged = [f"{what}: {line}" for what, line in Log(operator.log).unexpected()]
        return Compared(many, singly, young.progress.wrong, [problem] if problem else [], logged, young.errors)


def in_turn(runs: tuple[Soak, Soak], blocks: Iterable[Sequence[SoakJob]], in_flight: int, limit: float) -> Pair:
    """Run each of the ``blocks`` of jobs in both ``runs``, first in the one and then in the other, and the next block
    the other way round."""
    done: tuple[list[Done], list[Done]] = ([], [])
    for number, block in enumerate(blocks):
        for index in (0, 1) if number % 2 else (1, 0):
            done[index].extend(runs[index].run_many(block, in_flight, limit, apart=True))
    return done
