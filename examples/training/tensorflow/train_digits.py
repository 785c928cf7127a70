#!/usr/bin/env python3
"""Train a small network on the UCI digits with TensorFlow 2, alone or over parameter servers.

The same program is every process of a job; TF_CONFIG, which the operator sets, says which one. The chief (``chief`` or
``master``) hands out steps to the workers through a ClusterCoordinator, tests the result, and ends:

    final: test_accuracy=0.9750 workers=1 ps=2 epochs=20

Workers and parameter servers serve until they are ended. Without TF_CONFIG, or as the only process, it trains alone.
Exit status: 0 done, 1 failed, 2 bad arguments or environment, 130 and 143 interrupted and terminated.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# the modules that all frameworks' examples share; the images keep this layout
sys.path.append(str(Path(__file__).resolve().parents[1] / "shared"))
import digits
import rendezvous
from process import BadEnvironmentError, end_on_signals, leave, positive, say, status_of

CHIEFS = ("chief", "master")
SERVING = ("worker", "ps")
RENDEZVOUS_SECONDS = 300.0
HIDDEN_UNITS = 128
MOMENTUM = 0.9


@dataclass(frozen=True)
class Cluster:
    """What TF_CONFIG says: who there is (type to addresses), and which of them this process is."""

    type: str
    index: int
    members: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def is_chief(self) -> bool:
        return self.type in CHIEFS

    def count(self, type_: str) -> int:
        return len(self.members.get(type_, ()))

    def as_coordinated(self) -> dict[str, list[str]]:
        """The cluster as a ClusterCoordinator wants it: its own process is called chief."""
        renamed = {"chief" if type_ in CHIEFS else type_: list(found) for type_, found in self.members.items()}
        return {type_: found for type_, found in renamed.items() if type_ in ("chief", *SERVING)}


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The options; a bad one ends the process with status 2 and a usage line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--num-epochs", type=positive(int), default=20, help="passes over the training data")
    parser.add_argument("--batch-size", type=positive(int), default=32, help="samples of one step")
    parser.add_argument("--lr", type=positive(float), default=0.05, help="learning rate")
    parser.add_argument("--seed", type=int, default=0, help="of the initial weights and the order of the samples")
    parser.add_argument("--log_dir", default="", help="where the chief writes TensorBoard's event files; none if empty")
    return parser.parse_args(argv)


def parse_cluster(environment: Mapping[str, str]) -> Cluster | None:
    """The cluster that TF_CONFIG describes; None when this process is alone.

    Raises BadEnvironmentError, which says what is wrong with it.
    """
    text = environment.get("TF_CONFIG", "")
    if not text:
        return None
    try:
        config = json.loads(text)
        members = {str(type_): [str(a) for a in found] for type_, found in config["cluster"].items()}
        type_, index = str(config["task"]["type"]), int(config["task"]["index"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadEnvironmentError(
            f'TF_CONFIG is {text!r}, not {{"cluster": {{TYPE: [ADDRESS]}}, "task": {{"type": TYPE, "index": N}}}}'
        ) from error
    if not 0 <= index < len(members.get(type_, ())):
        raise BadEnvironmentError(f"TF_CONFIG: this process is {type_} {index}, and the cluster has no such task")
    if sum(map(len, members.values())) == 1:
        return None
    cluster = Cluster(type_, index, members)
    chiefs = [t for t in CHIEFS if members.get(t)]
    if len(chiefs) != 1:
        raise BadEnvironmentError("TF_CONFIG: one chief (or master) is needed, which tells the others what to do")
    for needed in SERVING:
        if not cluster.count(needed):
            raise BadEnvironmentError(f"TF_CONFIG: there is no {needed}: ParameterServerStrategy needs at least one")
    if type_ not in (*CHIEFS, *SERVING):
        raise BadEnvironmentError(f"TF_CONFIG: the type {type_} has no part in this program")
    return cluster


def serve(cluster: Cluster) -> None:
    """Be a worker or a parameter server until somebody ends the process."""
    import tensorflow as tf

    server = tf.distribute.Server(
        tf.train.ClusterSpec(cluster.as_coordinated()), job_name=cluster.type, task_index=cluster.index
    )
    say(f"{cluster.type} {cluster.index}: serving at {cluster.members[cluster.type][cluster.index]}")
    server.join()


def strategy_of(tf: Any, cluster: Cluster | None) -> Any:
    """How the variables are spread: over the parameter servers, or not at all."""
    if cluster is None:
        return tf.distribute.get_strategy()
    spec = tf.train.ClusterSpec(cluster.as_coordinated())
    # not from TF_CONFIG itself: a strategy knows its own process only as chief, and v1alpha1 calls it master
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        spec, task_type="chief", task_id=0, rpc_layer="grpc"
    )
    return tf.distribute.ParameterServerStrategy(resolver)


class Network:
    """A perceptron of one hidden layer, trained by gradient descent with momentum.

    Own variables and update: Keras 3 has no ParameterServerStrategy any more. Workers update in turn, without waiting
    for one another.
    """

    def __init__(self, tf: Any, seed: int) -> None:
        self._tf = tf
        shapes = [(digits.PIXELS, HIDDEN_UNITS), (HIDDEN_UNITS, digits.CLASSES)]
        self.weights, self.speeds = [], []
        for number, (rows, columns) in enumerate(shapes):
            start = tf.random.stateless_normal([rows, columns], seed=[seed, number], stddev=math.sqrt(2.0 / rows))
            for value in (start, tf.zeros([columns])):
                self.weights.append(tf.Variable(value))
                self.speeds.append(tf.Variable(tf.zeros_like(value), trainable=False))

    def __call__(self, images: Any) -> Any:
        tf, (w1, b1, w2, b2) = self._tf, self.weights
        return tf.nn.relu(images @ w1 + b1) @ w2 + b2

    def step(self, images: Any, labels: Any, rate: float) -> Any:
        """One update by one batch; its mean loss."""
        tf = self._tf
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=self(images))
            loss = tf.reduce_mean(losses)
        for weight, speed, gradient in zip(self.weights, self.speeds, tape.gradient(loss, self.weights), strict=True):
            speed.assign(MOMENTUM * speed - rate * gradient)
            weight.assign_add(speed)
        return loss


def wait_for_all(cluster: Cluster, timeout: float) -> None:
    """Until every server listens: a coordinator takes one that does not yet for one that has failed."""
    for type_ in SERVING:
        for address in cluster.members[type_]:
            host, _, port = address.rpartition(":")
            rendezvous.wait_for(host, int(port), timeout, lambda text: say(f"{cluster.type}: {text}"))


def train(options: argparse.Namespace, cluster: Cluster | None) -> None:
    """Be the chief, or the only process."""
    import tensorflow as tf

    data = digits.load()
    train_indices, test_indices = digits.split(len(data), seed=options.seed)
    workers, servers = (cluster.count(t) if cluster else 0 for t in SERVING)
    steps = digits.steps_per_epoch(len(train_indices), 1, options.batch_size)
    strategy = strategy_of(tf, cluster)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy) if cluster else None
    with strategy.scope():
        network = Network(tf, options.seed)
    say(f"chief: {len(train_indices)} samples, {steps} steps an epoch, {workers} workers, {servers} parameter servers")

    @tf.function
    def step(images: Any, labels: Any) -> Any:
        return strategy.run(network.step, args=(images, labels, options.lr))

    writer = tf.summary.create_file_writer(options.log_dir) if options.log_dir else None
    own = data.take(train_indices)
    images, labels = tf.constant(own.images, tf.float32), tf.constant(own.labels, tf.int32)
    for epoch in range(1, options.num_epochs + 1):
        start = time.monotonic()
        losses = []
        for batch in digits.batches(range(len(own)), steps, options.batch_size, seed=options.seed + epoch):
            picked = tf.gather(images, batch).numpy(), tf.gather(labels, batch).numpy()
            losses.append(coordinator.schedule(step, args=picked) if coordinator else step(*picked))
        if coordinator:
            coordinator.join()
            losses = [loss.fetch() for loss in losses]
        loss = float(sum(map(float, losses)) / len(losses))
        say(f"chief: epoch {epoch}/{options.num_epochs} loss={loss:.4f} seconds={time.monotonic() - start:.2f}")
        if not math.isfinite(loss):
            raise RuntimeError(f"the loss is {loss} in epoch {epoch}: lower --lr (it is {options.lr})")
        if writer:
            with writer.as_default(step=epoch):
                tf.summary.scalar("loss", loss)
            writer.flush()
    tests = data.take(test_indices)
    weights = [tf.identity(w) for w in network.weights]  # here, from wherever they are
    w1, b1, w2, b2 = weights
    scores = tf.nn.relu(tf.constant(tests.images, tf.float32) @ w1 + b1) @ w2 + b2
    right = tf.equal(tf.argmax(scores, axis=1, output_type=tf.int32), tf.constant(tests.labels, tf.int32))
    tested = float(tf.reduce_mean(tf.cast(right, tf.float32)))
    say(f"final: test_accuracy={tested:.4f} workers={workers} ps={servers} epochs={options.num_epochs}")


def run(argv: Sequence[str]) -> int:
    """The whole program; the exit status."""
    options = parse_arguments(argv)
    cluster = parse_cluster(os.environ)
    end_on_signals()
    # the strategy must not read it: it knows no master, and the resolver has it all
    os.environ.pop("TF_CONFIG", None)
    if cluster is None:
        say("TF_CONFIG describes no other process: training alone")
        train(options, None)
    elif cluster.is_chief:
        wait_for_all(cluster, RENDEZVOUS_SECONDS)
        train(options, cluster)
    else:
        serve(cluster)
    return 0


if __name__ == "__main__":
    leave(status_of(run))
