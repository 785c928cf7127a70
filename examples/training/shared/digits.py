"""The UCI handwritten digits: one small real data set for every framework's example.

1,797 images of 8x8 pixels (values 0..16) with their digit, as scikit-learn's wheel ships them: a gzipped CSV of
64 pixels and a label a line. Nothing here needs scikit-learn or a framework: only the file, and the standard library.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PIXELS = 64
CLASSES = 10
MAX_PIXEL = 16.0
PATH_VARIABLE = "DIGITS_CSV"


@dataclass(frozen=True)
class Digits:
    """Images as rows of 64 floats in 0..1, and the digit of each (0..9)."""

    images: tuple[tuple[float, ...], ...]
    labels: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, indices: Sequence[int]) -> Digits:
        """The samples at `indices`, in that order."""
        return Digits(tuple(self.images[i] for i in indices), tuple(self.labels[i] for i in indices))


def find_csv() -> Path:
    """Where the digits lie: $DIGITS_CSV, else beside this module (as in the images), else in scikit-learn.

    Raises FileNotFoundError, naming all three places, when none of them has the file.
    """
    candidates = []
    if named := os.environ.get(PATH_VARIABLE):
        candidates.append(Path(named))
    else:
        candidates.append(Path(__file__).resolve().with_name("digits.csv.gz"))
        # find_spec does not import scikit-learn, which would cost a second and need SciPy
        if (spec := importlib.util.find_spec("sklearn")) and spec.origin:
            candidates.append(Path(spec.origin).parent / "datasets" / "data" / "digits.csv.gz")
    for path in candidates:
        if path.is_file():
            return path
    looked = ", ".join(map(str, candidates))
    raise FileNotFoundError(
        f"the digits were not found at {looked}; install scikit-learn or set {PATH_VARIABLE} to its digits.csv.gz"
    )


def load(path: Path | None = None) -> Digits:
    """The digits of `path` (default: `find_csv()`); ValueError names a line that is not 64 pixels and a digit."""
    source = path or find_csv()
    images, labels = [], []
    with gzip.open(source, "rt", newline="") as lines:
        for number, row in enumerate(csv.reader(lines), 1):
            values = [float(cell) for cell in row]
            if len(values) != PIXELS + 1 or not 0 <= values[-1] < CLASSES:
                raise ValueError(f"{source}:{number}: expected {PIXELS} pixels and a digit")
            images.append(tuple(value / MAX_PIXEL for value in values[:-1]))
            labels.append(int(values[-1]))
    return Digits(tuple(images), tuple(labels))


def split(count: int, test_fraction: float = 0.2, seed: int = 0) -> tuple[list[int], list[int]]:
    """Indices of the training and of the test samples: disjoint, together all of 0..count-1.

    Every process computes the same split from the same seed, so no worker trains on what another one tests.
    """
    order = list(range(count))
    random.Random(seed).shuffle(order)
    tests = round(count * test_fraction)
    return order[tests:], order[:tests]


def shard(indices: Sequence[int], rank: int, workers: int) -> list[int]:
    """The part of `indices` that worker `rank` of `workers` trains on; parts are disjoint and differ by one at most."""
    if not 0 <= rank < workers:
        raise ValueError(f"rank {rank} is not one of {workers} workers")
    if workers > len(indices):
        raise ValueError(f"{workers} workers cannot share {len(indices)} samples: some would have none")
    return list(indices[rank::workers])


def steps_per_epoch(samples: int, workers: int, batch_size: int) -> int:
    """Batches that every worker trains on in one epoch: the same number for all, enough for the largest shard.

    A synchronous kv-store waits for one gradient of each worker a step: one batch more on one worker hangs the job.
    """
    largest = -(-samples // workers)
    return -(-largest // batch_size)


def batches(own: Sequence[int], steps: int, batch_size: int, seed: int) -> list[list[int]]:
    """`steps` full batches out of the shard `own`, shuffled by `seed`; the shard starts over when it runs out."""
    order = list(own)
    random.Random(seed).shuffle(order)
    return [[order[(step * batch_size + i) % len(order)] for i in range(batch_size)] for step in range(steps)]
