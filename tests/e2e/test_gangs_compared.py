"""Two jobs that fit one after the other: without a gang, with gangs of Kubernetes itself and with Volcano, in one run.

Writes the table of benchmarks/SYSTEMATIC.md to ``.build/gangs.md``. ``DLJOB_GANG_ROUNDS`` is the number of rounds of each way.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest
from devtools.lab.chaos.cli import kwok_program
from devtools.paths import ROOT
from devtools.testbed.base import versions
from devtools.testbed.base.settings import settings_from
from devtools.testbed.operator import OperatorProcess
from support import volcano
from support.gang_races import ROUNDS, end, hand_over, race, winner
from support.live_jobs import Cluster
from support.small_nodes import small_nodes

pytestmark = [pytest.mark.serial, pytest.mark.full]

WAYS = {"": "none", "kubernetes": "`kubernetes`", "volcano": f"`volcano` ({versions.VOLCANO.removeprefix('v')})"}
TIME = "from the end of the first job to the start of the second, median"
TABLE = ROOT / ".build" / "gangs.md"


@pytest.fixture
def place(cluster: Path, crds: None, namespace: str, tmp_path: Path) -> Iterator[Cluster]:
    """A namespace, two nodes of two CPUs that are named after it, and Volcano."""
    settings, here = settings_from(), Cluster(cluster, namespace, own_operator=True)
    with (
        small_nodes(here.core, kwok_program(settings), cluster, namespace, tmp_path),
        volcano.installed(settings, cluster, tmp_path),
    ):
        yield here


def play(here: Cluster, number: int) -> float | None:
    """One round; the seconds until the second job starts, None if both wait for each other."""
    one, other = race(here, number)
    found = winner(one, other)
    seconds = hand_over(here, *found) if found else None
    end(one, other)
    return seconds


def test_only_gangs_never_wait_for_each_other(place: Cluster, tmp_path: Path) -> None:
    played: dict[str, list[float | None]] = {}
    for way in WAYS:
        arguments = ["--namespace", place.namespace, *(["--gang-scheduler-name", way] if way else [])]
        with OperatorProcess(place.kubeconfig, tmp_path / f"operator-{way}.log", arguments) as operator:
            operator.wait_ready()
            played[way] = [play(place, number) for number in range(ROUNDS)]
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text(table(played))
    assert None in played[""], "the orders of the rounds show nothing"
    assert None not in played["kubernetes"]
    assert None not in played["volcano"]


def table(played: dict[str, list[float | None]]) -> str:
    """Markdown; the time of each way over that of Kubernetes' own gangs."""
    medians = {
        way: median(found) for way, all_ in played.items() if (found := [one for one in all_ if one is not None])
    }
    rows = [
        f"| `--gang-scheduler-name` | rounds | deadlocks | {TIME} |",
        "| --- " * 4 + "|",
    ]
    for way, seconds in played.items():
        ratio = f"{medians[way] / medians['kubernetes']:.2f}" if way in medians else "-"
        rows.append(f"| {WAYS[way]} | {len(seconds)} | {seconds.count(None)} | {ratio} |")
    return "\n".join([*rows, "", *(f"{WAYS[way]}: median {seconds:.2f} s" for way, seconds in medians.items()), ""])
