#!/usr/bin/env python3
"""Train a small vision transformer on the UCI digits with the Trainer of Hugging Face's transformers.

Started by torchrun, the same program is every process of a job, and the Trainer averages their gradients over Gloo. It
says nothing of progress: where the operator has set the variables KUBEFLOW_TRAINER_SERVER_*, the Trainer itself reports
that of rank 0, at most every five seconds. Rank 0 tests the result:

    final: test_accuracy=0.9750 processes=2 epochs=12

The model begins with random weights, so the program needs no network but that of its job. Exit status: 0 done,
1 failed, 2 bad arguments, 143 and 130 terminated and interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

# the modules that all frameworks' examples share; the images keep this layout
sys.path.append(str(Path(__file__).resolve().parents[1] / "shared"))
import digits
from process import end_on_signals, leave, positive, say, status_of

SIDE = 8
"""Pixels of an image in each direction."""
PATCH = 2
"""Of a patch, which is one token."""


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The options; a bad one ends the process with status 2 and a usage line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--num-epochs", type=positive(int), default=12, help="passes over the training data")
    parser.add_argument("--batch-size", type=positive(int), default=32, help="samples of one process in one step")
    parser.add_argument("--lr", type=positive(float), default=0.002, help="learning rate, at its highest")
    parser.add_argument("--seed", type=int, default=0, help="of the initial weights and the order of the samples")
    return parser.parse_args(argv)


def train(options: argparse.Namespace) -> None:
    """Train and, as rank 0, test."""
    import torch
    from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification, set_seed

    set_seed(options.seed)
    data = digits.load()
    images, labels = torch.tensor(data.images).reshape(-1, 1, SIDE, SIDE), torch.tensor(data.labels)
    trained_on, tested_on = digits.split(len(data), seed=options.seed)
    samples = [{"pixel_values": images[index], "labels": labels[index]} for index in trained_on]
    network = ViTForImageClassification(
        ViTConfig(
            image_size=SIDE,
            patch_size=PATCH,
            num_channels=1,
            num_labels=digits.CLASSES,
            hidden_size=96,
            intermediate_size=192,
            num_hidden_layers=4,
            num_attention_heads=4,
            initializer_range=0.1,  # the usual 0.02 is for wider layers, and learns nothing in the first epochs
        )
    )
    settings = TrainingArguments(
        output_dir="/tmp/trainer",
        num_train_epochs=options.num_epochs,
        per_device_train_batch_size=options.batch_size,
        learning_rate=options.lr,
        warmup_steps=30,
        weight_decay=0.1,
        logging_steps=20,
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
        seed=options.seed,
    )
    trainer = Trainer(model=network, args=settings, train_dataset=samples)
    say(f"rank {settings.process_index}: {len(samples)} samples, {settings.world_size} processes")
    trainer.train()
    if trainer.is_world_process_zero():
        network.eval()
        with torch.no_grad():
            right = network(pixel_values=images[tested_on]).logits.argmax(dim=1) == labels[tested_on]
        accuracy = float(right.float().mean())
        say(f"final: test_accuracy={accuracy:.4f} processes={settings.world_size} epochs={options.num_epochs}")
    trainer.accelerator.wait_for_everyone()  # a process that leaves would break the connections of the others
    trainer.accelerator.end_training()


def run(argv: Sequence[str]) -> int:
    """The whole program; the exit status."""
    options = parse_arguments(argv)
    end_on_signals()
    train(options)
    return 0


if __name__ == "__main__":
    leave(status_of(run))
