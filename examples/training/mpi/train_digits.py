#!/usr/bin/env python3
"""Train a small network on the UCI digits with NumPy, alone or as one of the processes that mpirun has started.

Each process computes gradients on its share of the data, and MPI adds them up in every step (Allreduce), so that all
processes have the same weights. Rank 0 tests the result:

    final: test_accuracy=0.9749 processes=2 epochs=30

Exit status: 0 done, 1 failed, 2 bad arguments, 143 and 130 terminated and interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# the modules that all frameworks' examples share; the images keep this layout
sys.path.append(str(Path(__file__).resolve().parents[1] / "shared"))
import digits
from process import end_on_signals, leave, positive, say, status_of

HIDDEN = 64
MOMENTUM = 0.9


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The options; a bad one ends the process with status 2 and a usage line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--num-epochs", type=positive(int), default=30, help="passes over the training samples")
    parser.add_argument("--batch-size", type=positive(int), default=32, help="samples of a process in a step")
    parser.add_argument("--lr", type=positive(float), default=0.1, help="learning rate")
    parser.add_argument("--seed", type=int, default=0, help="of the weights and of the order of the samples")
    return parser.parse_args(argv)


def initial_weights(numpy: Any, seed: int) -> list[Any]:
    """Those of two layers, the same in every process."""
    random = numpy.random.default_rng(seed)
    sizes = ((digits.PIXELS, HIDDEN), (HIDDEN, digits.CLASSES))
    return [part for a, b in sizes for part in (random.normal(0, (2 / a) ** 0.5, (a, b)), numpy.zeros(b))]


def forward(numpy: Any, weights: Sequence[Any], images: Any) -> tuple[Any, Any]:
    """The hidden layer, and the probabilities of the digits."""
    first, first_bias, second, second_bias = weights
    hidden = numpy.maximum(images @ first + first_bias, 0)
    scores = hidden @ second + second_bias
    powers = numpy.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, powers / powers.sum(axis=1, keepdims=True)


def gradients(numpy: Any, weights: Sequence[Any], images: Any, labels: Any) -> list[Any]:
    """Of the mean cross entropy, by each of the weights."""
    hidden, found = forward(numpy, weights, images)
    found[numpy.arange(len(labels)), labels] -= 1
    found /= len(labels)
    below = (found @ weights[2].T) * (hidden > 0)
    return [images.T @ below, below.sum(axis=0), hidden.T @ found, found.sum(axis=0)]


def train(options: argparse.Namespace, numpy: Any, mpi: Any) -> None:
    """Train with all processes, and, as rank 0, test."""
    world = mpi.COMM_WORLD
    rank, processes = world.Get_rank(), world.Get_size()
    data = digits.load()
    train_indices, test_indices = digits.split(len(data), seed=options.seed)
    own = digits.shard(train_indices, rank, processes)
    say(f"rank {rank} of {processes} on {mpi.Get_processor_name()}: {len(own)} samples")
    images, labels = numpy.array(data.images), numpy.array(data.labels)
    steps = digits.steps_per_epoch(len(train_indices), processes, options.batch_size)
    weights = initial_weights(numpy, options.seed)
    speeds = [numpy.zeros_like(one) for one in weights]
    for epoch in range(options.num_epochs):
        for batch in digits.batches(own, steps, options.batch_size, options.seed + epoch * processes + rank):
            # one exchange for all layers
            parts = gradients(numpy, weights, images[batch], labels[batch])
            flat = numpy.concatenate([part.ravel() for part in parts])
            world.Allreduce(mpi.IN_PLACE, flat)
            ends = numpy.cumsum([part.size for part in parts])[:-1]
            for weight, speed, total in zip(weights, speeds, numpy.split(flat / processes, ends), strict=True):
                speed *= MOMENTUM
                speed -= options.lr * total.reshape(speed.shape)
                weight += speed
    if rank == 0:
        _, found = forward(numpy, weights, images[test_indices])
        accuracy = float((found.argmax(axis=1) == labels[test_indices]).mean())
        say(f"final: test_accuracy={accuracy:.4f} processes={processes} epochs={options.num_epochs}")


def run(argv: Sequence[str]) -> int:
    """The whole program; the exit status."""
    options = parse_arguments(argv)
    end_on_signals()  # before MPI has threads, which inherit the blocked signals
    import numpy
    from mpi4py import MPI

    train(options, numpy, MPI)
    # mpirun takes a process that ends without it for one that has failed, and ends the others
    MPI.Finalize()
    return 0


if __name__ == "__main__":
    leave(status_of(run))
