"""The MPI program without MPI: arguments, gradients, the image."""

from __future__ import annotations

import subprocess
import sys

import pytest
import yaml
from support import example_programs

program = example_programs.load("mpi/train_digits.py")
FILE = example_programs.TRAINING / "mpi" / "train_digits.py"


@pytest.mark.parametrize(
    ("argument", "said"), [("--num-epochs=0", "--num-epochs"), ("--lr=nan", "--lr"), ("--batch-size=x", "--batch-size")]
)
def test_mistakes_end_with_2(argument: str, said: str) -> None:
    ended = subprocess.run(
        [sys.executable, FILE, argument], env={}, capture_output=True, text=True, timeout=30, check=False
    )
    assert ended.returncode == 2
    assert said in ended.stderr


def test_defaults() -> None:
    options = program.parse_arguments([])
    assert (options.num_epochs, options.batch_size, options.seed) == (30, 32, 0)


def test_the_image_offers_what_the_example_calls() -> None:
    from devtools.build.images import definition

    document = yaml.safe_load((example_programs.ROOT / "examples" / "mpi-digits.yaml").read_text())
    (container,) = document["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    assert container["command"][-1] == definition.load("mpi").program
