"""The image in the local cluster: ``python -m devtools.lab.demo.deploy up --namespace a,b``, ``... down``.

For molecule's scenarios, which share one operator and have their own namespaces. ``down`` keeps the CRDs, as stopping
an operator process does. The last line of the output is the result.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from devtools.lab.demo.deployed import DeployedOperator
from devtools.lab.demo.operator_process import OperatorError
from devtools.testbed.base.settings import Settings, settings_from


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m devtools.lab.demo.deploy", description=__doc__)
    parser.add_argument("action", choices=("up", "down"))
    parser.add_argument(
        "--namespace", default="", metavar="NAMES", help="watched namespaces, comma-separated (default: all)"
    )
    options = parser.parse_args(argv)
    settings = settings_from()
    try:
        if options.action == "up":
            print(up(settings, [name for name in options.namespace.split(",") if name]))
        else:
            print(down(settings))
    except OperatorError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def up(settings: Settings, namespaces: Sequence[str]) -> str:
    """Deploy the operator, and wait until it is ready."""
    with DeployedOperator(settings, keep=True, namespaces=namespaces) as operator:
        operator.wait_ready()
        return operator.ready_line


def down(settings: Settings) -> str:
    """Delete the operator. Does nothing if there is no cluster."""
    if not settings.kubeconfig.is_file():
        return "not deployed"
    DeployedOperator(settings).delete_all_but_definitions()
    return "deleted"


if __name__ == "__main__":
    sys.exit(main())
