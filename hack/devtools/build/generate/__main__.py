"""Writes what follows from the frameworks' declarations; with ``--check`` reports what is stale, and exits with 1.

With ``--role`` it does so for roles outside of this tree: their tasks and argument specs, and in ``--output`` the CRDs,
watches.yaml and a ClusterRole.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework

from devtools.build import generated
from devtools.build.generate import files
from devtools.paths import ROOT


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = generated.parser("generate", __doc__)
    parser.add_argument(
        "--role", type=Path, action="append", default=[], help="a role outside of this tree; repeatable"
    )
    parser.add_argument("--output", type=Path, help="folder for the CRDs, watches.yaml and the ClusterRole of --role")
    given = parser.parse_args(arguments)
    if bool(given.role) != bool(given.output):
        parser.error("--role and --output belong together")
    try:
        wanted = files.of_roles(given.role, given.output) if given.role else files.of_tree(root)
    except (InvalidFramework, ValueError) as e:
        print(e)
        return 1
    return generated.settle(wanted, "generate", check=given.check, root=given.output or root)


if __name__ == "__main__":
    sys.exit(main())
