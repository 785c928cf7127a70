#!/usr/bin/env python3
"""Train a small network on the UCI digits with JAX, alone or as one of several processes.

The same program is every process of a job. It reads NUM_PROCESSES and PROCESS_ID, which the operator sets; JAX itself
reads JAX_COORDINATOR_ADDRESS. Each process holds its share of the data, and in every step XLA sums up the gradients of
all of them over Gloo. Process 0 tests the result:

    final: test_accuracy=0.9694 processes=2 steps=150

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
from typing import Any

# the modules that all frameworks' examples share; the images keep this layout
sys.path.append(str(Path(__file__).resolve().parents[1] / "shared"))
import digits
from process import BadEnvironmentError, end_on_signals, leave, number, positive, say, status_of

HIDDEN_UNITS = 128
MOMENTUM = 0.9
REPORTED_STEPS = 50


@dataclass(frozen=True)
class Place:
    """Which process of how many this is."""

    rank: int
    processes: int


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The options; a bad one ends the process with status 2 and a usage line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--num-steps", type=positive(int), default=150, help="each on all of the training data")
    parser.add_argument("--lr", type=positive(float), default=0.3, help="learning rate")
    parser.add_argument("--seed", type=int, default=0, help="of the initial weights and the choice of the test samples")
    return parser.parse_args(argv)


def parse_place(environment: Mapping[str, str]) -> Place:
    """Raises BadEnvironmentError, which names what is wrong. Without any of the variables a process is alone."""
    processes = number("NUM_PROCESSES", environment.get("NUM_PROCESSES") or "1", 1)
    rank = number("PROCESS_ID", environment.get("PROCESS_ID") or "0", 0, processes - 1)
    if processes > 1 and not environment.get("JAX_COORDINATOR_ADDRESS"):
        raise BadEnvironmentError(f"JAX_COORDINATOR_ADDRESS is not set: {processes} processes need a place to meet")
    return Place(rank, processes)


def initial_weights(seed: int) -> dict[str, Any]:
    """The same in every process."""
    import numpy

    source = numpy.random.default_rng(seed)
    return {
        "hidden": source.normal(0, 0.1, (digits.PIXELS, HIDDEN_UNITS)).astype("float32"),
        "hidden_bias": numpy.zeros(HIDDEN_UNITS, "float32"),
        "output": source.normal(0, 0.1, (HIDDEN_UNITS, digits.CLASSES)).astype("float32"),
        "output_bias": numpy.zeros(digits.CLASSES, "float32"),
    }


def train(options: argparse.Namespace, place: Place) -> None:
    """Meet the others, train, and, as process 0, test."""
    import jax
    import jax.numpy as jnp
    import numpy
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    if place.processes > 1:
        # JAX would otherwise look for a Kubernetes Job around it, with requests to the API server
        if jax.__version_info__ < (0, 5):  # their CPU backend has no collectives by default, and reads no variable
            jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(
            num_processes=place.processes, process_id=place.rank, cluster_detection_method="deactivate"
        )
        say(f"process {place.rank}: all {jax.process_count()} processes are there")
    mesh = Mesh(numpy.array(jax.devices()), ("data",))
    by_process, everywhere = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())

    def logits(weights: Any, images: Any) -> Any:
        hidden = jax.nn.relu(images @ weights["hidden"] + weights["hidden_bias"])
        return hidden @ weights["output"] + weights["output_bias"]

    def mean_loss(weights: Any, images: Any, labels: Any) -> Any:
        scores = jax.nn.log_softmax(logits(weights, images))
        return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], axis=1))

    @jax.jit
    def step(weights: Any, velocity: Any, images: Any, labels: Any) -> Any:
        loss, gradient = jax.value_and_grad(mean_loss)(weights, images, labels)
        velocity = jax.tree.map(lambda v, g: MOMENTUM * v + g, velocity, gradient)
        return jax.tree.map(lambda w, v: w - options.lr * v, weights, velocity), velocity, loss

    data = digits.load()
    train_indices, test_indices = digits.split(len(data), seed=options.seed)
    shared = len(train_indices) // place.processes * place.processes  # each process must have the same number
    own = data.take(digits.shard(train_indices[:shared], place.rank, place.processes))
    say(f"process {place.rank}: {len(own)} samples")
    images = jax.make_array_from_process_local_data(by_process, numpy.array(own.images, "float32"))
    labels = jax.make_array_from_process_local_data(by_process, numpy.array(own.labels, "int32"))
    start = initial_weights(options.seed)
    weights = jax.device_put(start, everywhere)
    velocity = jax.device_put({name: numpy.zeros_like(value) for name, value in start.items()}, everywhere)
    for count in range(1, options.num_steps + 1):
        weights, velocity, loss = step(weights, velocity, images, labels)
        if count % REPORTED_STEPS == 0 or count == options.num_steps:
            say(f"process {place.rank}: step {count}/{options.num_steps} loss={float(loss):.4f}")
            if not math.isfinite(loss):
                raise RuntimeError(f"the loss is {loss} in step {count}: lower --lr (it is {options.lr})")
    if place.rank == 0:
        learnt = {name: numpy.asarray(value.addressable_data(0)) for name, value in weights.items()}
        tests = data.take(test_indices)
        hidden = numpy.maximum(numpy.array(tests.images) @ learnt["hidden"] + learnt["hidden_bias"], 0)
        found = (hidden @ learnt["output"] + learnt["output_bias"]).argmax(axis=1)
        accuracy = float((found == numpy.array(tests.labels)).mean())
        say(f"final: test_accuracy={accuracy:.4f} processes={place.processes} steps={options.num_steps}")
    if place.processes > 1:
        jax.distributed.shutdown()  # returns when all processes have come so far


def run(argv: Sequence[str]) -> int:
    """The whole program; the exit status."""
    options = parse_arguments(argv)
    place = parse_place(os.environ)
    end_on_signals()
    train(options, place)
    return 0


if __name__ == "__main__":
    leave(status_of(run))
