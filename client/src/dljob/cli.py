"""The command line ``dljob``, which kubectl finds as ``kubectl dljob``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from dljob import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="dljob", description="Distributed training jobs on Kubernetes.")
    parser.add_argument("--version", action="version", version=f"dljob {__version__}")
    parser.parse_args(arguments)
    return 0
