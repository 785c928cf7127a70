"""The command line of `dljob-operator`."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator import __version__, convert, logs, preflight, run, serve
from dljob_operator.engine.kube import ApiConnectionError, NoCluster
from dljob_operator.engine.lifecycle.cleanup import CleanupIncomplete
from dljob_operator.history import command as history
from dljob_operator.run import LeadershipLost
from dljob_operator.runner.client import RunnerError
from dljob_operator.runner.prefork import Preforked
from dljob_operator.serve import BridgeStuck
from dljob_operator.watches import WatchesError


def main(argv: Sequence[str] | None = None, preforked: Preforked | None = None) -> int:
    """Run the command line `argv` and return the exit code: 0, or 1 with the reason on stderr.

    `preforked` becomes the fork server of the commands that have one.
    """
    options = parse(argv, preforked)
    logs.configure(options.log_level, options.log_format)
    # urllib3 warns when a full pool opens one more connection. Users of the operator need not act on that.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    try:
        return int(options.do(options))
    except (WatchesError, NoCluster, RunnerError, CleanupIncomplete, LeadershipLost, BridgeStuck, ValueError) as error:
        print(f"dljob-operator: {error}", file=sys.stderr)
    except (ApiError, ApiConnectionError) as error:
        print(f"dljob-operator: the API server returned an error: {error}", file=sys.stderr)
    return 1


def parse(argv: Sequence[str] | None, preforked: Preforked | None = None) -> argparse.Namespace:
    """Return the options of the command line; `do` is the function of its command. Ends the process for a wrong one."""
    parser = argparse.ArgumentParser(
        prog="dljob-operator", description="Reconcile deep-learning jobs with Ansible roles."
    )
    parser.add_argument("--version", action="version", version=f"dljob-operator {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (run, serve, convert, preflight, history):
        command.add_parser(commands)
    return parser.parse_args(argv, argparse.Namespace(preforked=preforked))
