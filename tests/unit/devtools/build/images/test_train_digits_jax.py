"""The JAX program without JAX: arguments, environment, exit statuses."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support import example_programs

program = example_programs.load("jax/train_digits.py")
FILE = example_programs.TRAINING / "jax" / "train_digits.py"
WORKER = {"JAX_COORDINATOR_ADDRESS": "job-worker-0:6666", "NUM_PROCESSES": "3", "PROCESS_ID": "2"}


def test_the_operators_variables() -> None:
    assert program.parse_place(WORKER) == program.Place(2, 3)
    assert program.parse_place({}) == program.Place(0, 1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"NUM_PROCESSES": "0"}, "NUM_PROCESSES is '0', not a number of at least 1"),
        ({"PROCESS_ID": "3"}, "PROCESS_ID is '3', not a number from 0 to 2"),
        (
            {"JAX_COORDINATOR_ADDRESS": ""},
            "JAX_COORDINATOR_ADDRESS is not set: 3 processes need a place to meet",
        ),
    ],
)
def test_bad_environment_is_named(change: dict[str, str], said: str) -> None:
    with pytest.raises(program.BadEnvironmentError, match=f"^{said}"):
        program.parse_place({**WORKER, **change})


@pytest.mark.parametrize(
    ("environment", "argument", "said"),
    [
        ({**WORKER, "PROCESS_ID": "7"}, "--num-steps=1", "error: PROCESS_ID is '7', not a number from 0 to 2\n"),
        (WORKER, "--num-steps=0", "--num-steps"),
    ],
)
def test_mistakes_end_with_2(environment: dict[str, str], argument: str, said: str) -> None:
    ended = subprocess.run(
        [sys.executable, FILE, argument], env=environment, capture_output=True, text=True, timeout=30, check=False
    )
    assert ended.returncode == 2
    assert said in ended.stderr
