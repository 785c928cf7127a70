"""What the programs of the laboratory have in common on the command line."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.termination import ends_main_thread
from devtools.testbed.client import Refused
from devtools.testbed.operator import OperatorError

Say = Callable[[str], None]


class _Defaults(argparse.ArgumentDefaultsHelpFormatter):
    def _get_help_string(self, action: argparse.Action) -> str | None:
        return super()._get_help_string(action) if action.default not in (None, "", False, []) else action.help


def parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """Of ``python -m devtools.lab.<name>``; its help has the defaults."""
    return argparse.ArgumentParser(f"python -m devtools.lab.{name}", None, description, formatter_class=_Defaults)


def speaker() -> Say:
    """Prints lines with the seconds from now on."""
    began = time.monotonic()
    return lambda text: print(f"{time.monotonic() - began:5.0f} s {text}", flush=True)


def done(name: str, work: Callable[[], object]) -> bool:
    """Do the ``work``, which SIGINT, SIGTERM and SIGHUP end; says in a line why it was not done."""
    try:
        with ends_main_thread():
            work()
        return True
    except (KeyboardInterrupt, SystemExit):
        print(f"{name}: interrupted", file=sys.stderr)
    except (ClusterError, OperatorError, Refused, ValueError, OSError) as error:  # TimeoutError is one of the last
        print(f"{name}: {error}", file=sys.stderr)
    return False
