"""The PaddlePaddle program without PaddlePaddle: arguments, environment, exit statuses."""

from __future__ import annotations

import subprocess
import sys

import pytest
import yaml
from support import example_programs

program = example_programs.load("paddle/train_digits.py")
FILE = example_programs.TRAINING / "paddle" / "train_digits.py"
WORKER = {"PADDLE_TRAINERS_NUM": "3", "PADDLE_TRAINER_ID": "2"}


def test_the_operators_variables() -> None:
    assert program.parse_place(WORKER) == program.Place(2, 3)
    assert program.parse_place({}) == program.Place(0, 1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"PADDLE_TRAINERS_NUM": "0"}, "PADDLE_TRAINERS_NUM is '0', not a number of at least 1"),
        ({"PADDLE_TRAINER_ID": "3"}, "PADDLE_TRAINER_ID is '3', not a number from 0 to 2"),
    ],
)
def test_bad_environment_is_named(change: dict[str, str], said: str) -> None:
    with pytest.raises(Exception, match=f"^{said}"):
        program.parse_place({**WORKER, **change})


@pytest.mark.parametrize(
    ("environment", "argument", "said"),
    [
        (
            {**WORKER, "PADDLE_TRAINER_ID": "7"},
            "--num-epochs=1",
            "error: PADDLE_TRAINER_ID is '7', not a number from 0 to 2\n",
        ),
        (WORKER, "--num-epochs=0", "--num-epochs"),
    ],
)
def test_mistakes_end_with_2(environment: dict[str, str], argument: str, said: str) -> None:
    ended = subprocess.run(
        [sys.executable, FILE, argument], env=environment, capture_output=True, text=True, timeout=30, check=False
    )
    assert ended.returncode == 2
    assert said in ended.stderr


def test_the_image_offers_what_the_example_calls() -> None:
    from devtools.build.images import definition

    document = yaml.safe_load((example_programs.ROOT / "examples" / "paddle-digits.yaml").read_text())
    (container,) = document["spec"]["paddleReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    assert container["command"][-1] == definition.load("paddle").program
