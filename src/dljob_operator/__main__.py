"""``python -m dljob_operator`` is the console script ``dljob-operator``."""

from __future__ import annotations

import sys

from dljob_operator.runner.prefork import prefork

_RUN_ANSIBLE = ("run", "serve")
"""The commands that have a fork server."""


def main() -> int:
    """Run the command line of this process and return its exit code."""
    preforked = prefork() if sys.argv[1:2] and sys.argv[1] in _RUN_ANSIBLE else None
    # not before: the command line imports modules of the collection, which the fork server must not have
    from dljob_operator import cli

    return cli.main(preforked=preforked)


if __name__ == "__main__":
    sys.exit(main())
