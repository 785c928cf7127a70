#!/usr/bin/env python3
"""Train boosted trees on the UCI digits with LightGBM, alone or as one of several processes.

The same program is every process of a job. It reads MASTER_ADDR, MASTER_PORT, WORKER_ADDRS, WORKER_PORT, WORLD_SIZE and
RANK, which the operator sets. LightGBM has no tracker: every process gets the list of all addresses, listens at its own
and connects to the others. Each builds the histograms of its share of the data, and LightGBM adds them up at every
split (tree_learner=data). Rank 0 tests the result:

    final: test_accuracy=0.9666 processes=2 rounds=40

Exit status: 0 done, 1 failed, 2 bad arguments or environment, 143 and 130 terminated and interrupted.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# the modules that all frameworks' examples share; the images keep this layout
sys.path.append(str(Path(__file__).resolve().parents[1] / "shared"))
import digits
from process import BadEnvironmentError, end_on_signals, leave, number, positive, say, status_of
from rendezvous import wait_for

NAME_SECONDS = 300
MESSAGE_MINUTES = 5
"""How long LightGBM waits for the others' next message; until they listen it tries to connect for two minutes."""


@dataclass(frozen=True)
class Place:
    """Which process of how many this is, and the name and port of each in the order of ranks."""

    rank: int = 0
    machines: tuple[tuple[str, int], ...] = ()

    @property
    def processes(self) -> int:
        return max(1, len(self.machines))


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The options; a bad one ends the process with status 2 and a usage line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--num-rounds", type=positive(int), default=40, help="trees per digit")
    parser.add_argument("--num-leaves", type=positive(int), default=7, help="of a tree")
    parser.add_argument("--lr", type=positive(float), default=0.2, help="learning rate")
    parser.add_argument("--seed", type=int, default=0, help="of the order of the samples")
    return parser.parse_args(argv)


def parse_place(environment: Mapping[str, str]) -> Place:
    """Raises BadEnvironmentError, which names what is wrong. Without any of the variables a process is alone."""
    processes = number("WORLD_SIZE", environment.get("WORLD_SIZE") or "1", 1)
    rank = number("RANK", environment.get("RANK") or "0", 0, processes - 1)
    if processes == 1:
        return Place()
    for name in ("MASTER_ADDR", "MASTER_PORT", "WORKER_ADDRS", "WORKER_PORT"):
        if not environment.get(name):
            raise BadEnvironmentError(f"{name} is not set: {processes} processes need the addresses of all")
    workers = environment["WORKER_ADDRS"].split(",")
    if len(workers) != processes - 1:
        raise BadEnvironmentError(f"WORKER_ADDRS names {len(workers)} workers, and WORLD_SIZE is {processes}")
    master_port, worker_port = (number(name, environment[name], 1, 65535) for name in ("MASTER_PORT", "WORKER_PORT"))
    machines = ((environment["MASTER_ADDR"], master_port), *((worker, worker_port) for worker in workers))
    return Place(rank, machines)


def addresses(machines: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """The same with IPv4 addresses for names: LightGBM looks for its own among its interfaces, and knows no other kind.

    Waits until every name resolves. The ports may still be closed then: LightGBM itself tries again.
    """
    found = {}

    def resolve(host: str, port: int) -> None:
        found[host] = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)[0][4][0]

    for host, port in machines:
        wait_for(host, port, NAME_SECONDS, say, connect=resolve)
    return [(found[host], port) for host, port in machines]


def network(place: Place) -> dict[str, object]:
    """LightGBM's settings for a training in which every process has a share of the samples; none for one process."""
    if place.processes == 1:
        return {}
    machines = addresses(place.machines)
    return {
        "tree_learner": "data",
        "pre_partition": True,  # each process loads its own share, and LightGBM divides nothing
        "num_machines": place.processes,
        "machines": ",".join(f"{host}:{port}" for host, port in machines),
        "local_listen_port": machines[place.rank][1],
        "time_out": MESSAGE_MINUTES,
    }


def train(options: argparse.Namespace, place: Place) -> None:
    """Meet the others, train, and, as rank 0, test."""
    import lightgbm
    import numpy

    data = digits.load()
    train_indices, test_indices = digits.split(len(data), seed=options.seed)
    own, tests = data.take(digits.shard(train_indices, place.rank, place.processes)), data.take(test_indices)
    settings = {
        "objective": "multiclass",
        "num_class": digits.CLASSES,
        "num_leaves": options.num_leaves,
        "learning_rate": options.lr,
        "num_threads": 1,  # a replica's share of a node is small
        **network(place),
    }
    say(f"rank {place.rank}: {len(own)} samples")
    samples = lightgbm.Dataset(numpy.array(own.images), numpy.array(own.labels), params=settings)
    trees = lightgbm.train(settings, samples, options.num_rounds)
    if place.rank == 0:
        found = numpy.asarray(trees.predict(numpy.array(tests.images))).argmax(axis=1)
        accuracy = float((found == numpy.array(tests.labels)).mean())
        say(f"final: test_accuracy={accuracy:.4f} processes={place.processes} rounds={options.num_rounds}")


def run(argv: Sequence[str]) -> int:
    """The whole program; the exit status."""
    options = parse_arguments(argv)
    place = parse_place(os.environ)
    end_on_signals()
    train(options, place)
    return 0


if __name__ == "__main__":
    leave(status_of(run))
