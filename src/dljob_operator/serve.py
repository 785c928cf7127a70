"""`dljob-operator serve`: runs ansible-operator, serves its runs, and writes requeue annotations."""

from __future__ import annotations

import argparse
import functools
import logging
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import Popen

from ansible_collections.dljob.operator.plugins.module_utils.shared.progress import OFF

from dljob_operator import logs
from dljob_operator.allocator import limit_arenas, start_trimming
from dljob_operator.ansible_operator_bridge import harmful_annotations, split, supervise
from dljob_operator.ansible_operator_bridge.controller import BridgeController
from dljob_operator.ansible_operator_bridge.server import ShimServer
from dljob_operator.ansible_operator_bridge.watchdog import Watchdog
from dljob_operator.options import HISTORY_DATABASE, PROGRESS, add_common
from dljob_operator.runner import RunnerClient
from dljob_operator.signals import SignalThread
from dljob_operator.watches import Watch
from dljob_operator.wiring import Operator

_LOG = logging.getLogger("dljob_operator")
_LAST_RUNS = 5.0  # seconds for runs that are still in progress when ansible-operator has ended


class BridgeStuck(Exception):
    """A part of the bridge no longer works, which a restart may mend."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of `dljob-operator`."""
    parser = commands.add_parser(
        "serve",
        help="run ansible-operator, serve its runs, and requeue jobs whose owned objects change",
        usage="dljob-operator serve [options] -- ansible-operator run [its options]",
    )
    parser.set_defaults(do=run)
    add_common(parser)
    parser.add_argument("command", nargs=argparse.REMAINDER, help="the command to run, after --")


def run(options: argparse.Namespace) -> int:
    """Run the given command, usually ansible-operator, to its end and return its exit code."""
    limit_arenas()
    with SignalThread() as signals:
        start_trimming()
        return serve(signals, options)


def serve(signals: SignalThread, options: argparse.Namespace) -> int:
    """Like `run`, with `signals` for the command. Raises BridgeStuck, and ValueError for a command that is none."""
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise ValueError("serve: add the command to run: dljob-operator serve -- ansible-operator run")
    if PROGRESS.of(os.environ) != OFF:
        raise ValueError(
            f"{PROGRESS.variable}: only the embedded engine takes reports of progress: set "
            f"DLJOB_ENGINE=dljob-operator, or remove {PROGRESS.variable}"
        )
    if HISTORY_DATABASE.of(os.environ):
        raise ValueError(
            f"{HISTORY_DATABASE.variable}: only the embedded engine keeps a history of jobs: set "
            f"DLJOB_ENGINE=dljob-operator, or remove {HISTORY_DATABASE.variable}"
        )
    operator = Operator(options)
    theirs, ours = split.split(operator.watches)
    api = operator.connect()
    runner = operator.start_runner()
    with tempfile.TemporaryDirectory(prefix="dljob-shim-") as folder:
        path = Path(folder) / "socket"
        bridge = BridgeController(operator.watches, api, runner, operator.settings, supervise.flags_of(command))
        if ours:
            _LOG.info(
                "the embedded engine reconciles kinds beside ansible-operator", extra=logs.fields(kinds=_kinds(ours))
            )
            split.write_without(operator.watches_file, ours, Path(folder) / "watches.yaml")
            command = split.with_watches_file(command, Path(folder) / "watches.yaml")
        harmful_annotations.remove_harmful(api, theirs, operator.settings.namespaces)
        environ = supervise.child_environ(os.environ, path)
        run_command = functools.partial(supervise.run, command, environ, signals)
        return _supervise(run_command, ShimServer(path, bridge), runner, bridge)


def _supervise(
    run_command: Callable[[Callable[[Popen[bytes]], object]], int],
    server: ShimServer,
    runner: RunnerClient,
    bridge: BridgeController,
) -> int:
    """Start the parts of the bridge and run the command. End both if one of these parts no longer works."""
    bridge.start()
    server.start()
    with Watchdog([server.problem, runner.problem, bridge.problem]) as watchdog:
        try:
            code = run_command(watchdog.start)
        finally:
            server.stop()
            bridge.stop(_LAST_RUNS)
    if watchdog.problem:
        raise BridgeStuck(watchdog.problem)
    return code


def _kinds(watches: Sequence[Watch]) -> str:
    return ", ".join(str(watch.gvk) for watch in watches)
