"""The MXNet program without MXNet: arguments, environment, exit statuses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import example_programs

program = example_programs.load("mxnet/train_digits.py")
FILE = example_programs.TRAINING / "mxnet" / "train_digits.py"
WORKER = {
    "DMLC_ROLE": "worker",
    "DMLC_PS_ROOT_URI": "127.0.0.1",
    "DMLC_PS_ROOT_PORT": "9091",
    "DMLC_NUM_SERVER": "2",
    "DMLC_NUM_WORKER": "3",
}


def test_defaults_are_enough() -> None:
    options = program.parse_arguments([])
    assert options.kv_store == "dist_sync"
    assert options.num_epochs > 0 and options.num_layers > 0 and options.batch_size > 0 and options.lr > 0


def test_the_arguments_of_the_early_manifest() -> None:
    options = program.parse_arguments(["--num-epochs=10", "--num-layers=2", "--kv-store=dist_device_sync"])
    assert (options.num_epochs, options.num_layers, options.kv_store) == (10, 2, "dist_device_sync")


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("--kv-store=nccl", "--kv-store"),
        ("--num-epochs=0", "--num-epochs: must be positive"),
        ("--num-layers=-1", "--num-layers: must be positive"),
        ("--batch-size=x", "--batch-size: invalid int value"),
        ("--lr=inf", "--lr: must be positive"),
        ("--lr=nan", "--lr: must be positive"),
        ("--gpus=0", "--gpus"),
    ],
)
def test_bad_arguments_end_with_2(argument: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        program.parse_arguments([argument])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_the_environment_of_a_worker() -> None:
    assert program.parse_cluster(WORKER) == program.Cluster("worker", "127.0.0.1", 9091, servers=2, workers=3)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"PATH": "/bin", "DMLC_ROLE": ""},
        {**WORKER, "DMLC_ROLE": "scheduler", "DMLC_NUM_SERVER": "0", "DMLC_NUM_WORKER": "0"},
    ],
)
def test_alone_when_there_is_no_other_process(environment: dict[str, str]) -> None:
    assert program.parse_cluster(environment) is None


@pytest.mark.parametrize(
    ("environment", "rank", "workers", "first"),
    [
        ({"DMLC_WORKER_ID": "0"}, 1, 2, True),  # MXNet ranks workers by address
        ({"DMLC_WORKER_ID": "1"}, 0, 2, False),
        ({}, 0, 2, True),  # a list layout has no such variable
        ({"DMLC_WORKER_ID": ""}, 1, 2, False),
        ({"DMLC_WORKER_ID": "1"}, 0, 1, True),  # each worker of a local job trains alone
    ],
)
def test_the_first_worker_by_index_tests_the_result(
    environment: dict[str, str], rank: int, workers: int, first: bool
) -> None:
    assert program.is_first(environment, rank, workers) is first


@pytest.mark.parametrize("name", program.REQUIRED)
@pytest.mark.parametrize("value", [None, ""])
def test_a_missing_variable_is_named(name: str, value: str | None) -> None:
    environment = {k: v for k, v in {**WORKER, name: value}.items() if v is not None}
    with pytest.raises(program.BadEnvironmentError, match=f"^{name} not set"):
        program.parse_cluster(environment)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("DMLC_ROLE", "chief", "DMLC_ROLE is 'chief'"),
        ("DMLC_PS_ROOT_PORT", "0", "DMLC_PS_ROOT_PORT is '0', not a number from 1 to 65535"),
        ("DMLC_PS_ROOT_PORT", "70000", "DMLC_PS_ROOT_PORT is '70000'"),
        ("DMLC_PS_ROOT_PORT", "http", "DMLC_PS_ROOT_PORT is 'http'"),
        ("DMLC_NUM_WORKER", "-1", "DMLC_NUM_WORKER is '-1', not a number of at least 0"),
        ("DMLC_NUM_WORKER", "0", "DMLC_NUM_WORKER is 0: .* at least one server and one worker"),
        ("DMLC_NUM_SERVER", "0", "DMLC_NUM_SERVER is 0"),
    ],
)
def test_a_bad_variable_is_named(name: str, value: str, said: str) -> None:
    with pytest.raises(program.BadEnvironmentError, match=said):
        program.parse_cluster({**WORKER, name: value})


def test_the_time_to_wait_for_the_scheduler() -> None:
    assert program.rendezvous_timeout({}) == program.RENDEZVOUS_SECONDS
    assert program.rendezvous_timeout({"RENDEZVOUS_TIMEOUT": "2.5"}) == 2.5
    for text in ("0", "-1", "soon", "inf"):
        with pytest.raises(program.BadEnvironmentError, match="RENDEZVOUS_TIMEOUT"):
            program.rendezvous_timeout({"RENDEZVOUS_TIMEOUT": text})


# ---- as a process


def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("DMLC_")}
    return subprocess.Popen(
        [sys.executable, str(FILE), *arguments],
        env={**clean, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


def test_an_incomplete_environment_ends_with_2_and_one_line() -> None:
    status, _, err = end(start(DMLC_ROLE="worker"))
    assert status == 2
    assert err.startswith("error: DMLC_PS_ROOT_URI, ") and err.count("\n") == 1


def test_a_local_store_in_a_distributed_job_is_refused() -> None:
    status, _, err = end(start("--kv-store=local", **WORKER))
    assert status == 2
    assert "--kv-store local" in err


def test_an_unreachable_scheduler_ends_with_1_and_its_reason() -> None:
    unheard = {**WORKER, "DMLC_PS_ROOT_URI": "scheduler.invalid", "RENDEZVOUS_TIMEOUT": "1"}
    status, out, err = end(start(**unheard))
    assert status == 1
    assert "worker: waiting: the name scheduler.invalid does not resolve" in out
    assert err.startswith("error: gave up after") and err.count("\n") == 1


def test_missing_data_or_framework_ends_with_1(tmp_path: Path) -> None:
    # a fake module that can be imported, so that only the data is missing
    (tmp_path / "mxnet.py").write_text("class random:\n    seed = staticmethod(lambda seed: None)\n")
    status, _, err = end(start(DIGITS_CSV=str(tmp_path / "none.gz"), PYTHONPATH=str(tmp_path)))
    assert (status, "none.gz" in err) == (1, True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_at_once_with_its_status(number: signal.Signals) -> None:
    process = start(**{**WORKER, "DMLC_PS_ROOT_URI": "scheduler.invalid"})
    assert process.stdout is not None
    assert "waiting" in process.stdout.readline()
    process.send_signal(number)
    status, out, _ = end(process)
    assert status == 128 + number
    assert f"ended by {number.name}" in out
