#!/usr/bin/env python3
"""Train boosted trees on the UCI digits with XGBoost, alone or as one of several processes.

The same program is every process of a job. It reads MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK, which the operator
sets. Rank 0 runs the tracker at which all processes meet, and trains like the others: each builds the histograms of its
share of the data, and XGBoost adds them up in every round. Rank 0 tests the result:

    final: test_accuracy=0.9610 processes=2 rounds=40

Exit status: 0 done, 1 failed, 2 bad arguments or environment, 143 and 130 terminated and interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# the modules that all frameworks' examples share; the images keep this layout
sys.path.append(str(Path(__file__).resolve().parents[1] / "shared"))
import digits
from process import BadEnvironmentError, end_on_signals, leave, number, positive, say, status_of
from rendezvous import wait_for

ANY_ADDRESS = "0.0.0.0"
CONNECT_ATTEMPTS = 30
"""How often a process tries to reach the tracker; the pause grows by a second each time."""
NAME_SECONDS = 300
END_SECONDS = 60


@dataclass(frozen=True)
class Place:
    """Which process of how many this is, and where the tracker listens."""

    rank: int = 0
    processes: int = 1
    host: str = ""
    port: int = 0


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The options; a bad one ends the process with status 2 and a usage line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--num-rounds", type=positive(int), default=40, help="trees per digit")
    parser.add_argument("--max-depth", type=positive(int), default=3, help="of a tree")
    parser.add_argument("--lr", type=positive(float), default=0.5, help="learning rate")
    parser.add_argument("--seed", type=int, default=0, help="of the order of the samples")
    return parser.parse_args(argv)


def parse_place(environment: Mapping[str, str]) -> Place:
    """Raises BadEnvironmentError, which names what is wrong. Without any of the variables a process is alone."""
    processes = number("WORLD_SIZE", environment.get("WORLD_SIZE") or "1", 1)
    rank = number("RANK", environment.get("RANK") or "0", 0, processes - 1)
    if processes == 1:
        return Place()
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        if not environment.get(name):
            raise BadEnvironmentError(f"{name} is not set: {processes} processes need a tracker to meet at")
    return Place(
        rank, processes, environment["MASTER_ADDR"], number("MASTER_PORT", environment["MASTER_PORT"], 1, 65535)
    )


@contextlib.contextmanager
def all_processes(place: Place) -> Iterator[None]:
    """The body runs while the processes are connected. Rank 0 leaves after all others have."""
    if place.processes == 1:
        yield
        return
    from xgboost import collective
    from xgboost.tracker import RabitTracker

    tracker = None
    if place.rank == 0:
        tracker = RabitTracker(n_workers=place.processes, host_ip=ANY_ADDRESS, port=place.port, sortby="task")
        tracker.start()
    # XGBoost tries again while nothing listens, but not while the name of the master's pod does not resolve yet
    wait_for(place.host, place.port, NAME_SECONDS, say, connect=socket.getaddrinfo)
    with collective.CommunicatorContext(
        dmlc_tracker_uri=place.host,
        dmlc_tracker_port=place.port,
        dmlc_retry=CONNECT_ATTEMPTS,
        # the tracker sorts these texts: without leading zeros, process 10 would become rank 2
        dmlc_task_id=f"{place.rank:05d}",
    ):
        say(f"rank {collective.get_rank()}: all {collective.get_world_size()} processes are there")
        yield
    if tracker:
        tracker.wait_for(timeout=END_SECONDS)


def train(options: argparse.Namespace, place: Place) -> None:
    """Meet the others, train, and, as rank 0, test."""
    import numpy
    import xgboost

    data = digits.load()
    train_indices, test_indices = digits.split(len(data), seed=options.seed)
    own, tests = data.take(digits.shard(train_indices, place.rank, place.processes)), data.take(test_indices)
    settings = {
        "objective": "multi:softmax",
        "num_class": digits.CLASSES,
        "tree_method": "hist",
        "max_depth": options.max_depth,
        "eta": options.lr,
        "nthread": 1,  # a replica's share of a node is small
    }
    with all_processes(place):
        samples = xgboost.DMatrix(numpy.array(own.images), numpy.array(own.labels))
        say(f"rank {place.rank}: {len(own)} samples")
        trees = xgboost.train(settings, samples, options.num_rounds)
    if place.rank == 0:  # not while they are connected: there each new matrix is an exchange between all of them
        found = trees.predict(xgboost.DMatrix(numpy.array(tests.images)))
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
