#!/usr/bin/env python3
"""Train a small network on the UCI digits with a loop of PyTorch that reports its progress by Kubeflow's SDK.

One process. After every epoch it calls `update_trainjob_status`, which does nothing where the operator has not set the
variables KUBEFLOW_TRAINER_SERVER_*. That sends at most one report in five seconds and drops the others, so the program
repeats its last one. At the end it tests the network:

    final: test_accuracy=0.9750 reports=4 epochs=40

An epoch lasts at least --epoch-seconds, since data as small as this takes no time. Exit status: 0 done, 1 failed, 2 bad
arguments, 143 and 130 terminated and interrupted.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

# the modules that all frameworks' examples share; the images keep this layout
sys.path.append(str(Path(__file__).resolve().parents[1] / "shared"))
import digits
from process import end_on_signals, leave, positive, say, status_of

BATCH = 64
HIDDEN_UNITS = 128
LAST_REPORT_SECONDS = 10
"""How long the last report is repeated, longer than the interval of the SDK."""


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The options; a bad one ends the process with status 2 and a usage line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--num-epochs", type=positive(int), default=40, help="passes over the training data")
    parser.add_argument("--epoch-seconds", type=positive(float), default=0.4, help="an epoch takes at least so long")
    return parser.parse_args(argv)


def train(options: argparse.Namespace) -> None:
    """Train, report, and test."""
    import torch
    from kubeflow.trainer import update_trainjob_status

    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(digits.PIXELS, HIDDEN_UNITS), torch.nn.ReLU(), torch.nn.Linear(HIDDEN_UNITS, digits.CLASSES)
    )
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    data = digits.load()
    images, labels = torch.tensor(data.images), torch.tensor(data.labels)
    trained_on, tested_on = digits.split(len(data))
    steps = digits.steps_per_epoch(len(trained_on), 1, BATCH)
    begun, reports = time.monotonic(), 0
    for epoch in range(1, options.num_epochs + 1):
        start, total = time.monotonic(), 0.0
        for batch in digits.batches(trained_on, steps, BATCH, seed=epoch):
            loss = torch.nn.functional.cross_entropy(network(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        time.sleep(max(0.0, start + options.epoch_seconds - time.monotonic()))
        seconds = (time.monotonic() - begun) / epoch
        report = {
            "progress_percent": 100 * epoch // options.num_epochs,
            "estimated_remaining_seconds": int(seconds * (options.num_epochs - epoch)),
            "metrics": {"loss": total / steps, "epoch": epoch},
        }
        is_sent = update_trainjob_status(**report)
        reports += is_sent
    until = time.monotonic() + LAST_REPORT_SECONDS
    while reports and not is_sent and time.monotonic() < until:  # without reports before, the endpoint is not there
        time.sleep(1)
        is_sent = update_trainjob_status(**report)
        reports += is_sent
    with torch.no_grad():
        right = network(images[tested_on]).argmax(dim=1) == labels[tested_on]
    accuracy = float(right.float().mean())
    say(f"final: test_accuracy={accuracy:.4f} reports={reports} epochs={options.num_epochs}")


def run(argv: Sequence[str]) -> int:
    """The whole program; the exit status."""
    options = parse_arguments(argv)
    end_on_signals()
    train(options)
    return 0


if __name__ == "__main__":
    leave(status_of(run))
