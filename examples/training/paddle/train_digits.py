#!/usr/bin/env python3
"""Train a small network on the UCI digits with PaddlePaddle, alone or as one of several processes.

The same program is every process of a job. `python -m paddle.distributed.launch` starts it, which reads PADDLE_MASTER
and PADDLE_NNODES, as the operator sets them, and tells the program its rank in PADDLE_TRAINER_ID. Each process trains
on its share of the data, and DataParallel averages their gradients over Gloo in every step. Rank 0 tests the result:

    final: test_accuracy=0.9749 processes=2 epochs=20

Exit status: 0 done, 1 failed, 2 bad arguments or environment, 143 and 130 terminated and interrupted.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# the modules that all frameworks' examples share; the images keep this layout
sys.path.append(str(Path(__file__).resolve().parents[1] / "shared"))
import digits
from process import end_on_signals, leave, number, positive, say, status_of

HIDDEN_UNITS = 128
MOMENTUM = 0.9
REPORTED_EPOCHS = 5


@dataclass(frozen=True)
class Place:
    """Which process of how many this is."""

    rank: int
    processes: int


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The options; a bad one ends the process with status 2 and a usage line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--num-epochs", type=positive(int), default=20, help="passes over the training data")
    parser.add_argument("--batch-size", type=positive(int), default=32, help="samples of one process in one step")
    parser.add_argument("--lr", type=positive(float), default=0.1, help="learning rate")
    parser.add_argument("--seed", type=int, default=0, help="of the initial weights and the order of the samples")
    return parser.parse_args(argv)


def parse_place(environment: Mapping[str, str]) -> Place:
    """Raises BadEnvironmentError, which names what is wrong. Without any of the variables a process is alone."""
    processes = number("PADDLE_TRAINERS_NUM", environment.get("PADDLE_TRAINERS_NUM") or "1", 1)
    return Place(number("PADDLE_TRAINER_ID", environment.get("PADDLE_TRAINER_ID") or "0", 0, processes - 1), processes)


def train(options: argparse.Namespace, place: Place) -> None:
    """Meet the others, train, and, as rank 0, test."""
    import numpy
    import paddle

    if place.processes > 1:
        paddle.distributed.init_parallel_env()
        say(f"rank {place.rank}: all {paddle.distributed.get_world_size()} processes are there")
    paddle.seed(options.seed)
    network = paddle.nn.Sequential(
        paddle.nn.Linear(digits.PIXELS, HIDDEN_UNITS), paddle.nn.ReLU(), paddle.nn.Linear(HIDDEN_UNITS, digits.CLASSES)
    )
    optimizer = paddle.optimizer.Momentum(options.lr, MOMENTUM, parameters=network.parameters())
    together = paddle.DataParallel(network) if place.processes > 1 else network
    data = digits.load()
    train_indices, test_indices = digits.split(len(data), seed=options.seed)
    own = data.take(digits.shard(train_indices, place.rank, place.processes))
    steps = digits.steps_per_epoch(len(train_indices), place.processes, options.batch_size)
    images, labels = numpy.array(own.images, "float32"), numpy.array(own.labels, "int64")
    say(f"rank {place.rank}: {len(own)} samples, {steps} steps an epoch")
    for epoch in range(1, options.num_epochs + 1):
        total = 0.0
        for batch in digits.batches(range(len(own)), steps, options.batch_size, seed=options.seed + epoch):
            scores = together(paddle.to_tensor(images[batch]))
            loss = paddle.nn.functional.cross_entropy(scores, paddle.to_tensor(labels[batch]))
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            total += float(loss)
        if epoch % REPORTED_EPOCHS == 0 or epoch == options.num_epochs:
            say(f"rank {place.rank}: epoch {epoch}/{options.num_epochs} loss={total / steps:.4f}")
        if not math.isfinite(total):
            raise RuntimeError(f"the loss is {total} in epoch {epoch}: lower --lr (it is {options.lr})")
    if place.rank == 0:
        tests = data.take(test_indices)
        found = network(paddle.to_tensor(numpy.array(tests.images, "float32"))).numpy().argmax(axis=1)
        accuracy = float((found == numpy.array(tests.labels)).mean())
        say(f"final: test_accuracy={accuracy:.4f} processes={place.processes} epochs={options.num_epochs}")
    if place.processes > 1:
        paddle.distributed.barrier()  # nobody leaves while another one may still need its connection


def run(argv: Sequence[str]) -> int:
    """The whole program; the exit status."""
    options = parse_arguments(argv)
    place = parse_place(os.environ)
    end_on_signals()
    train(options, place)
    return 0


if __name__ == "__main__":
    leave(status_of(run))
