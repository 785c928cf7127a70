#!/usr/bin/env python3
"""Train a small network on the UCI digits with PyTorch, alone or as one of several processes.

The same program is every process of a job. Started by python it reads MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK,
which the operator sets; started by torchrun it reads the same from that. Each process trains on its share of the data,
and DistributedDataParallel averages their gradients over Gloo in every step. Rank 0 tests the result:

    final: test_accuracy=0.9750 processes=3 epochs=20

With --checkpoint FILE rank 0 keeps what was learnt after every epoch, and all begin from there, until the training is
done: what torchrun wants of a program whose workers come and go. --epoch-seconds leaves them time to come and go, which
data as small as this does not. Exit status: 0 done, 1 failed, 2 bad arguments or
environment, 143 and 130 terminated and interrupted.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

# the modules that all frameworks' examples share; the images keep this layout
sys.path.append(str(Path(__file__).resolve().parents[1] / "shared"))
import digits
from process import BadEnvironmentError, end_on_signals, leave, number, positive, say, status_of

HIDDEN_UNITS = 128
MOMENTUM = 0.9
RENDEZVOUS_SECONDS = 300


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
    parser.add_argument("--checkpoint", type=Path, help="the file that keeps what was learnt after every epoch")
    parser.add_argument("--epoch-seconds", type=positive(float), help="an epoch takes at least so long")
    return parser.parse_args(argv)


def parse_place(environment: Mapping[str, str]) -> Place:
    """Raises BadEnvironmentError, which names what is wrong. Without any of the variables a process is alone."""
    processes = number("WORLD_SIZE", environment.get("WORLD_SIZE") or "1", 1)
    rank = number("RANK", environment.get("RANK") or "0", 0, processes - 1)
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        if processes > 1 and not environment.get(name):
            raise BadEnvironmentError(f"{name} is not set: {processes} processes need a place to meet")
    return Place(rank, processes)


def train(options: argparse.Namespace, place: Place) -> None:
    """Meet the others, train, and, as rank 0, test."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(options.seed)
    who = f"rank {place.rank}"
    if place.processes > 1:
        timeout = timedelta(seconds=RENDEZVOUS_SECONDS)
        torch.distributed.init_process_group("gloo", timeout=timeout)
        say(f"{who}: all {place.processes} processes are there")
    network = torch.nn.Sequential(
        torch.nn.Linear(digits.PIXELS, HIDDEN_UNITS), torch.nn.ReLU(), torch.nn.Linear(HIDDEN_UNITS, digits.CLASSES)
    )
    optimizer = torch.optim.SGD(network.parameters(), lr=options.lr, momentum=MOMENTUM)
    first = 1
    if options.checkpoint and options.checkpoint.is_file():
        kept = torch.load(options.checkpoint)
        network.load_state_dict(kept["network"])
        optimizer.load_state_dict(kept["optimizer"])
        first = kept["epoch"] + 1
        say(f"{who}: going on with epoch {first}")
    together = DistributedDataParallel(network) if place.processes > 1 else network
    data = digits.load()
    train_indices, test_indices = digits.split(len(data), seed=options.seed)
    own = data.take(digits.shard(train_indices, place.rank, place.processes))
    steps = digits.steps_per_epoch(len(train_indices), place.processes, options.batch_size)
    images, labels = torch.tensor(own.images), torch.tensor(own.labels)
    say(f"{who}: {len(own)} samples, {steps} steps an epoch")
    for epoch in range(first, options.num_epochs + 1):
        start, total = time.monotonic(), 0.0
        for batch in digits.batches(range(len(own)), steps, options.batch_size, seed=options.seed + epoch):
            loss = torch.nn.functional.cross_entropy(together(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += float(loss)
        say(
            f"{who}: epoch {epoch}/{options.num_epochs} loss={total / steps:.4f} seconds={time.monotonic() - start:.2f}"
        )
        if not math.isfinite(total):
            raise RuntimeError(f"the loss is {total} in epoch {epoch}: lower --lr (it is {options.lr})")
        if options.checkpoint and place.rank == 0:
            keep = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
            written = options.checkpoint.with_suffix(".new")
            torch.save(keep, written)
            written.replace(options.checkpoint)
        if options.epoch_seconds:
            time.sleep(max(0.0, start + options.epoch_seconds - time.monotonic()))
    if place.rank == 0:
        tests = data.take(test_indices)
        with torch.no_grad():
            right = network(torch.tensor(tests.images)).argmax(dim=1) == torch.tensor(tests.labels)
        accuracy = float(right.float().mean())
        say(f"final: test_accuracy={accuracy:.4f} processes={place.processes} epochs={options.num_epochs}")
    if place.processes > 1:
        torch.distributed.barrier()  # nobody leaves while another one may still need its connection
        torch.distributed.destroy_process_group()
    if options.checkpoint and place.rank == 0:
        options.checkpoint.unlink(missing_ok=True)  # the next job of this name is to train


def run(argv: Sequence[str]) -> int:
    """The whole program; the exit status."""
    options = parse_arguments(argv)
    place = parse_place(os.environ)
    end_on_signals()
    train(options, place)
    return 0


if __name__ == "__main__":
    leave(status_of(run))
