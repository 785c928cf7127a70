"""The XGBoost program without XGBoost: arguments, environment, exit statuses."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support import example_programs

program = example_programs.load("xgboost/train_digits.py")
FILE = example_programs.TRAINING / "xgboost" / "train_digits.py"
WORKER = {"MASTER_ADDR": "job-master-0", "MASTER_PORT": "9999", "WORLD_SIZE": "3", "RANK": "2"}


def test_the_operators_variables() -> None:
    assert program.parse_place(WORKER) == program.Place(2, 3, "job-master-0", 9999)
    assert program.parse_place({}) == program.Place(0, 1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"WORLD_SIZE": "0"}, "WORLD_SIZE is '0', not a number of at least 1"),
        ({"RANK": "3"}, "RANK is '3', not a number from 0 to 2"),
        ({"MASTER_ADDR": ""}, "MASTER_ADDR is not set: 3 processes need a tracker to meet at"),
        ({"MASTER_PORT": ""}, "MASTER_PORT is not set: 3 processes need a tracker to meet at"),
        ({"MASTER_PORT": "0"}, "MASTER_PORT is '0', not a number from 1 to 65535"),
    ],
)
def test_bad_environment_is_named(change: dict[str, str], said: str) -> None:
    with pytest.raises(program.BadEnvironmentError, match=f"^{said}"):
        program.parse_place({**WORKER, **change})


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
