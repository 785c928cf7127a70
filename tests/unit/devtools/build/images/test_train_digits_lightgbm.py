"""The LightGBM program without LightGBM: arguments, environment, addresses, exit statuses."""

from __future__ import annotations

import socket
import subprocess
import sys
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from support import example_programs
from support.builders import XGBOOST, environment_of, manifest_of, xgboostjob

program = example_programs.load("lightgbm/train_digits.py")
FILE = example_programs.TRAINING / "lightgbm" / "train_digits.py"
WORKER = {
    "MASTER_ADDR": "job-master-0",
    "MASTER_PORT": "9999",
    "WORKER_ADDRS": "job-worker-0,job-worker-1",
    "WORKER_PORT": "9998",
    "WORLD_SIZE": "3",
    "RANK": "2",
}
MACHINES = (("job-master-0", 9999), ("job-worker-0", 9998), ("job-worker-1", 9998))


def test_the_operators_variables() -> None:
    """The list is in the order of ranks: a process finds its own address in it by its rank."""
    place = program.parse_place(WORKER)
    assert (place.rank, place.machines, place.processes) == (2, MACHINES, 3)
    alone = program.parse_place({})
    assert (alone.rank, alone.machines, alone.processes) == (0, (), 1)


def test_it_reads_what_the_operator_sets() -> None:
    job = parse_job(xgboostjob(worker=2), XGBOOST)
    variables = environment_of(manifest_of(job, "worker", 1, framework=XGBOOST), "xgboost")
    place = program.parse_place(variables)
    assert place.rank == 2
    assert place.machines == tuple((f"example-job-{name}", 9999) for name in ("master-0", "worker-0", "worker-1"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"WORLD_SIZE": "0"}, "WORLD_SIZE is '0', not a number of at least 1"),
        ({"RANK": "3"}, "RANK is '3', not a number from 0 to 2"),
        ({"MASTER_ADDR": ""}, "MASTER_ADDR is not set: 3 processes need the addresses of all"),
        ({"WORKER_ADDRS": ""}, "WORKER_ADDRS is not set: 3 processes need the addresses of all"),
        ({"WORKER_ADDRS": "job-worker-0"}, "WORKER_ADDRS names 1 workers, and WORLD_SIZE is 3"),
        ({"MASTER_PORT": "0"}, "MASTER_PORT is '0', not a number from 1 to 65535"),
        ({"WORKER_PORT": "x"}, "WORKER_PORT is 'x', not a number from 1 to 65535"),
    ],
)
def test_bad_environment_is_named(change: dict[str, str], said: str) -> None:
    with pytest.raises(program.BadEnvironmentError, match=f"^{said}"):
        program.parse_place({**WORKER, **change})


def test_lightgbm_gets_addresses_for_names_and_its_own_port(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"job-master-0": "10.0.0.1", "job-worker-0": "10.0.0.2", "job-worker-1": "10.0.0.3"}

    def getaddrinfo(host: str, port: int, family: int, kind: int) -> list[Any]:
        assert family == socket.AF_INET
        return [(family, kind, 6, "", (known[host], port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    settings = program.network(program.parse_place(WORKER))
    assert settings["machines"] == "10.0.0.1:9999,10.0.0.2:9998,10.0.0.3:9998"
    assert (settings["local_listen_port"], settings["num_machines"], settings["tree_learner"]) == (9998, 3, "data")
    assert program.network(program.parse_place({**WORKER, "RANK": "0"}))["local_listen_port"] == 9999
    assert program.network(program.parse_place({})) == {}


def test_a_name_that_does_not_resolve_yet_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Any] = [socket.gaierror(-2, "unknown"), [(0, 0, 0, "", ("10.0.0.1", 9999))]]

    def getaddrinfo(*_: object) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    assert program.addresses([("job-master-0", 9999)]) == [("10.0.0.1", 9999)]


@pytest.mark.parametrize(
    ("environment", "argument", "said"),
    [
        ({**WORKER, "RANK": "7"}, "--num-rounds=1", "error: RANK is '7', not a number from 0 to 2\n"),
        (WORKER, "--num-rounds=0", "--num-rounds"),
    ],
)
def test_mistakes_end_with_2(environment: dict[str, str], argument: str, said: str) -> None:
    ended = subprocess.run(
        [sys.executable, FILE, argument], env=environment, capture_output=True, text=True, timeout=30, check=False
    )
    assert ended.returncode == 2
    assert said in ended.stderr
