"""The table, and the jobs of the cells."""

from __future__ import annotations

import csv
import io

import pytest
from devtools.build.images import definition
from devtools.lab.matrix import cells, cli, report
from devtools.lab.matrix.cells import FRAMEWORKS, Cell

JAX = next(one for one in FRAMEWORKS if one.key == "jax")
ROW = {
    "framework": "jax", "victim": "worker-1", "event": "SIGKILL", "policy": "OnFailure", "scope": "Replica",
    "victim_end": "137 after 0 s", "survivors": {"worker-0": "134 after 9 s"}, "reaction": "nothing",
    "result": "Succeeded after 30 s", "version": "0.10.2", "last": {"worker-0": "a | b"},
    "commit": "abc", "status": {"consequentRestarts": {"worker-0": 1}},
}  # fmt: skip
KEY = "jax/worker-1/SIGKILL/OnFailure/Replica"


def rows(results: report.Results, facts: dict[str, str]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(report.table(results, facts))))


def test_a_cell_is_a_row_and_one_that_did_not_run_says_so() -> None:
    found = rows({KEY: ROW}, {"date": "today"})
    assert {one["framework"] for one in found} == {"JAX 0.10"}, "a framework without a cell is left out"
    by_cell = {(one["event"], one["policy"]): one for one in found}
    ran = by_cell["worker-1 SIGKILL", "OnFailure"]
    assert ran["the process hit"] == "137 after 0 s" and ran["the others"] == "worker-0: 134 after 9 s"
    assert ran["operator and kubelet"] == "nothing; does not count 1 worker-0"
    assert ran["result"] == "Succeeded after 30 s" and ran["last lines of a hang"] == ""
    assert (ran["version"], ran["commit"], ran["date"]) == ("0.10.2", "abc", "today")
    assert by_cell["worker-1 exit 3", "OnFailure"]["result"] == "not run"
    assert ("worker-1 SIGKILL", "OnFailure, restartScope Job") in by_cell


def test_a_process_that_was_killed_before_it_printed_its_version_has_that_of_the_others() -> None:
    early = "jax/worker-1/SIGTERM/OnFailure/Replica"
    found = rows({KEY: ROW, early: {**ROW, "version": ""}}, {})
    assert {one["version"] for one in found if one["result"] != "not run"} == {"0.10.2"}


def test_a_hang_has_its_last_line() -> None:
    found = rows({KEY: {**ROW, "result": "**hangs**: no step for 46 s"}}, {})
    hang = next(one for one in found if one["event"] == "worker-1 SIGKILL")
    assert hang["result"] == "hangs: no step for 46 s" and hang["last lines of a hang"] == "worker-0: a | b"


def test_keys_are_unique_and_images_are_built() -> None:
    every = cells.ordered(FRAMEWORKS)
    assert len({cell.key for cell in every}) == len(every)
    built = {name for image in definition.load_all(full=True) for name in image.names}
    assert {framework.image for framework in FRAMEWORKS} <= built
    ranks = [cell.rank + cell.framework.later for cell in every]
    assert ranks == sorted(ranks)


@pytest.mark.parametrize("event", ["10 s late", "SIGKILL"])
def test_only_the_late_replica_waits(event: str) -> None:
    job = cells.manifest(Cell(JAX, "worker-1", event, "Never", "Job", 0), "m1")
    spec = job["spec"]["jaxReplicaSpecs"]["Worker"]
    command = spec["template"]["spec"]["containers"][0]["command"]
    assert ("sleep 10" in " ".join(command)) == (event == "10 s late")
    assert (spec["restartPolicy"], job["spec"]["runPolicy"]["restartScope"]) == ("Never", "Job")


def test_where_workers_meet_at_etcd_they_only_come_and_go_and_each_job_has_a_rendezvous_of_its_own() -> None:
    etcd = next(one for one in FRAMEWORKS if one.is_elastic_only)
    found = list(cells.cells(etcd))
    assert [cell.event for cell in found] == [cells.GROW, cells.REPLACE]
    names = [cells.manifest(found[0], name)["spec"]["elasticPolicy"]["rdzvId"] for name in ("m1", "m2")]
    assert names == ["m1", "m2"]
    assert etcd.spec["elasticPolicy"]["rdzvHost"] == cells.ETCD
    assert {one["metadata"]["name"] for one in cli.etcd_server()} == {"etcd", cells.ETCD}
