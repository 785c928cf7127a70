"""The programs that report their progress, without PyTorch: arguments, and what the image has of them."""

from __future__ import annotations

import subprocess
import sys

import pytest
import yaml
from devtools.build.images import definition
from support import example_programs

TRAINER, LOOP = "transformers/train_digits.py", "pytorch/report_progress.py"


@pytest.mark.parametrize("path", [TRAINER, LOOP])
def test_it_starts_with_its_own_defaults(path: str) -> None:
    program = example_programs.load(path)
    assert program.parse_arguments([]).num_epochs > 10, "long enough for two reports, five seconds apart"


@pytest.mark.parametrize(
    ("path", "argument"),
    [
        (TRAINER, "--num-epochs=0"),
        (TRAINER, "--batch-size=x"),
        (TRAINER, "--lr=inf"),
        (LOOP, "--num-epochs=-1"),
        (LOOP, "--epoch-seconds=0"),
    ],
)
def test_a_bad_argument_ends_with_2(path: str, argument: str) -> None:
    ended = subprocess.run(
        [sys.executable, example_programs.TRAINING / path, argument],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ended.returncode == 2
    assert argument.partition("=")[0] in ended.stderr


def test_the_image_has_both() -> None:
    image = definition.load("transformers")
    assert {str(source.origin) for source in image.sources} >= {f"examples/training/{one}" for one in (TRAINER, LOOP)}
    document = yaml.safe_load((example_programs.ROOT / "examples" / "pytorch-progress.yaml").read_text())
    for replica in document["spec"]["pytorchReplicaSpecs"].values():
        (container,) = replica["template"]["spec"]["containers"]
        assert container["image"] in image.names
        assert container["command"] == ["torchrun", image.program]
