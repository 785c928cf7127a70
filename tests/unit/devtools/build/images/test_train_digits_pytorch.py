"""The PyTorch program without PyTorch: arguments, environment, exit statuses."""

from __future__ import annotations

import subprocess
import sys

import pytest
import yaml
from support import example_programs

program = example_programs.load("pytorch/train_digits.py")
FILE = example_programs.TRAINING / "pytorch" / "train_digits.py"
WORKER = {"MASTER_ADDR": "job-master-0", "MASTER_PORT": "23456", "WORLD_SIZE": "3", "RANK": "2"}


def test_the_operators_variables() -> None:
    assert program.parse_place(WORKER) == program.Place(2, 3)
    assert program.parse_place({}) == program.Place(0, 1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"WORLD_SIZE": "0"}, "WORLD_SIZE is '0', not a number of at least 1"),
        ({"WORLD_SIZE": "many"}, "WORLD_SIZE is 'many', not a number of at least 1"),
        ({"RANK": "3"}, "RANK is '3', not a number from 0 to 2"),
        ({"RANK": "-1"}, "RANK is '-1', not a number from 0 to 2"),
        ({"MASTER_ADDR": ""}, "MASTER_ADDR is not set: 3 processes need a place to meet"),
        ({"MASTER_PORT": ""}, "MASTER_PORT is not set: 3 processes need a place to meet"),
    ],
)
def test_bad_environment_is_named(change: dict[str, str], said: str) -> None:
    with pytest.raises(program.BadEnvironmentError, match=f"^{said}"):
        program.parse_place({**WORKER, **change})


def run(environment: dict[str, str], *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, FILE, *argv], env=environment, capture_output=True, text=True, timeout=30, check=False
    )


def test_a_bad_environment_ends_with_2() -> None:
    ended = run({**WORKER, "RANK": "7"})
    assert (ended.returncode, ended.stderr) == (2, "error: RANK is '7', not a number from 0 to 2\n")


@pytest.mark.parametrize(
    "argument", ["--num-epochs=0", "--num-epochs=x", "--lr=inf", "--batch-size=-1", "--epoch-seconds=0"]
)
def test_a_bad_argument_ends_with_2(argument: str) -> None:
    ended = run(WORKER, argument)
    assert ended.returncode == 2
    assert argument.partition("=")[0] in ended.stderr


def test_the_image_offers_what_the_examples_call() -> None:
    from devtools.build.images import definition

    offered = definition.load("pytorch").program
    document = yaml.safe_load((example_programs.ROOT / "examples" / "pytorch-elastic.yaml").read_text())
    (container,) = document["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    assert container["command"] == ["torchrun", offered]
