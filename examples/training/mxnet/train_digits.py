#!/usr/bin/env python3
"""Train a small network on the UCI digits with MXNet 1.9, alone or over a parameter server.

The same program is every process of a job; DMLC_ROLE, which the operator sets, says which one. A scheduler and a
server serve until the training is over; a worker trains on its share, and the first one tests the result:

    final: test_accuracy=0.9750 workers=2 epochs=20 kv_store=dist_sync

With no DMLC_* variable it trains alone, in this process. Exit status: 0 done, 1 failed, 2 bad arguments or environment,
130 and 143 interrupted and terminated.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

# the modules that all frameworks' examples share; the images keep this layout
sys.path.append(str(Path(__file__).resolve().parents[1] / "shared"))
import digits
import rendezvous
from process import BadEnvironmentError, end_on_signals, leave, number, positive, say, status_of

KV_STORES = ("dist_sync", "dist_device_sync", "dist_async", "local")
ROLES = ("scheduler", "server", "worker")
REQUIRED = ("DMLC_ROLE", "DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT", "DMLC_NUM_SERVER", "DMLC_NUM_WORKER")
RENDEZVOUS_VARIABLE = "RENDEZVOUS_TIMEOUT"
RENDEZVOUS_SECONDS = 300.0
HIDDEN_UNITS = 128
MOMENTUM = 0.9


@dataclass(frozen=True)
class Cluster:
    """What the DMLC_* variables say: which process this is, where the scheduler listens, how many there are."""

    role: str
    host: str
    port: int
    servers: int
    workers: int


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The options; a bad one ends the process with status 2 and a usage line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kv-store", choices=KV_STORES, default="dist_sync", help="how workers share gradients")
    parser.add_argument("--num-epochs", type=positive(int), default=20, help="passes over the training data")
    parser.add_argument("--num-layers", type=positive(int), default=2, help=f"hidden layers of {HIDDEN_UNITS} units")
    parser.add_argument("--batch-size", type=positive(int), default=32, help="samples of one worker in one step")
    parser.add_argument("--lr", type=positive(float), default=0.05, help="learning rate")
    parser.add_argument("--seed", type=int, default=0, help="of the initial weights and the order of the samples")
    return parser.parse_args(argv)


def parse_cluster(environment: Mapping[str, str]) -> Cluster | None:
    """The cluster that DMLC_* describes; None when this process is alone: none of them is set, or nobody is counted.

    Raises BadEnvironmentError, which names the variable and what is wrong with it.
    """
    missing = [name for name in REQUIRED if not environment.get(name)]
    if len(missing) == len(REQUIRED):
        return None
    if missing:
        raise BadEnvironmentError(
            f"{', '.join(missing)} not set: a process of a distributed job needs all of {', '.join(REQUIRED)}; "
            "unset them all to train alone"
        )
    servers, workers = (number(name, environment[name], 0) for name in ("DMLC_NUM_SERVER", "DMLC_NUM_WORKER"))
    if not servers and not workers:
        return None
    if not servers or not workers:
        # MXNet would wait for one without a word: the servers hold the weights, the workers send the gradients
        name = "DMLC_NUM_WORKER" if servers else "DMLC_NUM_SERVER"
        raise BadEnvironmentError(f"{name} is 0: a distributed job needs at least one server and one worker")
    role = environment["DMLC_ROLE"]
    if role not in ROLES:
        raise BadEnvironmentError(f"DMLC_ROLE is {role!r}, not one of {', '.join(ROLES)}")
    return Cluster(
        role=role,
        host=environment["DMLC_PS_ROOT_URI"],
        port=number("DMLC_PS_ROOT_PORT", environment["DMLC_PS_ROOT_PORT"], 1, 65535),
        servers=servers,
        workers=workers,
    )


def rendezvous_timeout(environment: Mapping[str, str]) -> float:
    """Seconds to wait for the scheduler: $RENDEZVOUS_TIMEOUT, default 300."""
    text = environment.get(RENDEZVOUS_VARIABLE, "")
    try:
        seconds = float(text) if text else RENDEZVOUS_SECONDS
    except ValueError:
        seconds = -1.0
    if not (seconds > 0 and math.isfinite(seconds)):
        raise BadEnvironmentError(f"{RENDEZVOUS_VARIABLE} is {text!r}, not a positive number of seconds")
    return seconds


def is_first(environment: Mapping[str, str], rank: int, workers: int) -> bool:
    """Whether this worker, of that kv.rank, is the first one: worker 0 by $DMLC_WORKER_ID, which a v1 MXJob has.

    MXNet ranks the workers by address, the largest text first, so kv.rank is not the index of the pod.
    """
    text = environment.get("DMLC_WORKER_ID", "")
    return (number("DMLC_WORKER_ID", text, 0) if text and workers > 1 else rank) == 0


def serve(cluster: Cluster) -> None:
    """Be the scheduler or a server until the workers are done."""
    members = f"{cluster.servers} servers and {cluster.workers} workers"
    say(f"{cluster.role}: serving {members}, root {cluster.host}:{cluster.port}")
    try:
        import mxnet  # noqa: F401 - in these two roles the import itself serves, then exits
    except SystemExit as done:
        if done.code:
            raise RuntimeError(f"MXNet ended the {cluster.role} with status {done.code}") from done
        say(f"{cluster.role}: the training is over")
        return
    raise RuntimeError(f"importing MXNet as a {cluster.role} did not serve; is this MXNet 1.9?")


def build(mx: Any, layers: int) -> Any:
    """A perceptron of `layers` hidden layers, its input size given so that weights exist before the first batch."""
    net = mx.gluon.nn.HybridSequential()
    units = digits.PIXELS
    for _ in range(layers):
        net.add(mx.gluon.nn.Dense(HIDDEN_UNITS, activation="relu", in_units=units))
        units = HIDDEN_UNITS
    net.add(mx.gluon.nn.Dense(digits.CLASSES, in_units=units))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    return net


def accuracy(mx: Any, net: Any, data: digits.Digits) -> float:
    """The share of `data` that `net` recognises, 0..1."""
    predicted = net(mx.nd.array(data.images)).argmax(axis=1)
    return float((predicted == mx.nd.array(data.labels)).mean().asscalar())


def train(options: argparse.Namespace, kv_store: str) -> None:
    """Be a worker, or the only process: train on this rank's share, and test as the first worker."""
    import mxnet as mx

    mx.random.seed(options.seed)
    data = digits.load()
    train_indices, test_indices = digits.split(len(data), seed=options.seed)
    kv = mx.kv.create(kv_store)
    rank, workers = kv.rank, kv.num_workers
    own = data.take(digits.shard(train_indices, rank, workers))
    steps = digits.steps_per_epoch(len(train_indices), workers, options.batch_size)
    say(f"rank {rank} of {workers}: {len(own)} of {len(train_indices)} samples, {steps} steps an epoch, {kv_store}")

    images, labels = mx.nd.array(own.images), mx.nd.array(own.labels)
    net = build(mx, options.num_layers)
    # rank 0's weights are the ones that the servers take: Trainer initialises the store and pulls from it
    trainer = mx.gluon.Trainer(
        net.collect_params(), "sgd", {"learning_rate": options.lr, "momentum": MOMENTUM}, kvstore=kv
    )
    loss_of = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    # a synchronous server adds the workers' gradients up, an asynchronous one applies each by itself
    step_size = options.batch_size * (1 if kv_store == "dist_async" else workers)
    for epoch in range(1, options.num_epochs + 1):
        start = time.monotonic()
        loss_sum = hits = 0.0
        for batch in digits.batches(range(len(own)), steps, options.batch_size, seed=options.seed + epoch):
            picked = mx.nd.array(batch)
            x, y = images.take(picked), labels.take(picked)
            with mx.autograd.record():
                output = net(x)
                loss = loss_of(output, y)
            loss.backward()
            trainer.step(step_size)
            loss_sum += float(loss.sum().asscalar())
            hits += float((output.argmax(axis=1) == y).sum().asscalar())
        seen = steps * options.batch_size
        say(
            f"rank {rank}: epoch {epoch}/{options.num_epochs} loss={loss_sum / seen:.4f} "
            f"accuracy={hits / seen:.4f} seconds={time.monotonic() - start:.2f}"
        )
        if not math.isfinite(loss_sum):
            raise RuntimeError(f"the loss is {loss_sum} in epoch {epoch}: lower --lr (it is {options.lr})")
    if is_first(os.environ, rank, workers):
        tested = accuracy(mx, net, data.take(test_indices))
        say(f"final: test_accuracy={tested:.4f} workers={workers} epochs={options.num_epochs} kv_store={kv_store}")


def run(argv: Sequence[str]) -> int:
    """The whole program; the exit status."""
    options = parse_arguments(argv)
    cluster = parse_cluster(os.environ)
    timeout = rendezvous_timeout(os.environ)
    if cluster and options.kv_store == "local":
        raise BadEnvironmentError(
            f"--kv-store local as one of {cluster.workers} workers: the other processes of the job would wait for "
            "this one; choose a dist_ kv-store, or unset DMLC_* to train alone"
        )
    end_on_signals()
    if cluster is None:
        if options.kv_store != "local":
            say(f"DMLC_* describes no other process: training alone, kv-store local instead of {options.kv_store}")
        train(options, "local")
        return 0
    # the scheduler then binds every address: the name it is known by may be a Service's, not one of its own
    os.environ.setdefault("DMLC_USE_KUBERNETES", "1")
    if cluster.role != "scheduler":
        rendezvous.wait_for(cluster.host, cluster.port, timeout, lambda text: say(f"{cluster.role}: {text}"))
    if cluster.role == "worker":
        train(options, options.kv_store)
    else:
        serve(cluster)
    return 0


def main() -> NoReturn:
    status = status_of(run)
    if status == 1:  # it would first wait in MXNet's barrier for the other workers, for ever if they wait for this one
        leave(status)
    sys.exit(status)


if __name__ == "__main__":
    main()
