"""The command line."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence

from devtools.testbed.base import gobuild, versions
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.progress import clock
from devtools.testbed.base.settings import Settings, settings_from
from devtools.testbed.cluster import gpu, lifecycle, registry

MOLECULE = "MOLECULE_FILE"
"""Set in molecule's own playbooks, whose state must not go while they run."""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m devtools.testbed.cluster", description="The local kind cluster.")
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="create the cluster, or start the parts of it that are down")
    commands.add_parser("down", help="stop everything that 'up' started")
    commands.add_parser("status", help="show each component's state; exit status 1 if one does not work")
    commands.add_parser(
        "env", help='print the environment for a shell: eval "$(python -m devtools.testbed.cluster env)"'
    )
    kwok = commands.add_parser("kwok", help="create or remove kwok nodes until there are N")
    kwok.add_argument("count", type=count, metavar="N")
    gpus = commands.add_parser("gpu", help="advertise N GPUs in the real node's status")
    gpus.add_argument("count", type=count, metavar="N")
    gpus.add_argument("--resource", default="nvidia.com/gpu", help="extended resource (default: %(default)s)")
    push = commands.add_parser("push", help="push local images, so that pods can pull them under their own names")
    push.add_argument("images", nargs="+", metavar="IMAGE")
    commands.add_parser("pin", help="write the checksums of each Kubernetes version in versions.py to hack/go")
    return top


def count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError("must not be negative")
    return value


def run(settings: Settings, arguments: argparse.Namespace) -> int:
    match arguments.command:
        case "up":
            session = lifecycle.up(settings)
            print(f"cluster {settings.name} is up after {clock(session.report.elapsed())}")
            print(f"  export KUBECONFIG={settings.kubeconfig}")
            print(f"  or, with docker and the registry too: . {settings.state_dir / 'env'}")
        case "down":
            down(settings)
            print(f"cluster {settings.name} is down")
        case "status":
            parts = lifecycle.status(settings)
            for part in parts:
                print(f"{'ok ' if part.good else 'NO '} {part.name:<9} {part.detail}")
            return 0 if all(part.good for part in parts) else 1
        case "env":
            session, _ = lifecycle.existing(settings)
            print("\n".join(lifecycle.env_lines(settings, session.state)))
        case "kwok":
            with lifecycle.locked(settings):
                session, _ = lifecycle.existing(settings)
                lifecycle.kwok_nodes(session, arguments.count)
            print(f"{arguments.count} kwok nodes")
        case "gpu":
            _, kind = lifecycle.existing(settings)
            gpu.advertise(kind, arguments.resource, arguments.count)
            print(f"{settings.node}: {arguments.resource} {arguments.count}")
        case "push":
            session, kind = lifecycle.existing(settings)
            for name in registry.push(settings, kind.engine, session.state.registry_port, arguments.images):
                print(name)
        case "pin":
            for minor in versions.KUBERNETES:
                print(gobuild.pin_kubernetes(settings.go_dir, minor))
    return 0


def down(settings: Settings) -> None:
    """Stop the cluster, and what a killed run of the tests or of molecule has left in its folder."""
    other = settings.other_cluster
    if (other / "state.json").exists():
        lifecycle.down(settings_from({**os.environ, "DLJOB_CLUSTER_DIR": str(other), "DLJOB_CLUSTER_NAME": ""}))
        print(f"cluster {other} is down")
    lifecycle.down(settings)
    if MOLECULE not in os.environ:
        shutil.rmtree(settings.molecule_state_dir, ignore_errors=True)


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM must not leave the processes of an unfinished build. `ends_main_thread` needs the environment."""
    previous = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    try:
        with _ended_by_sigterm():
            return run(settings_from(), arguments)
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; 'up' continues from here, 'down' cleans up", file=sys.stderr)
        return 130
