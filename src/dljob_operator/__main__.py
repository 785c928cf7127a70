"""``python -m dljob_operator`` is the console script ``dljob-operator``."""

from __future__ import annotations

import sys

from dljob_operator.cli import main

if __name__ == "__main__":
    sys.exit(main())
