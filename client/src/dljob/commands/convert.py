"""``dljob convert``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from dljob.errors import Refused

LOGIC = "dljob.vendored.dljob_operator.convert"
"""That of ``dljob-operator convert``: `client/vendored.py` copies it when the package is built."""


def run(files: Sequence[str], to: str) -> int:
    """Print the converted manifests, and to stderr what is lost; returns 1 if something is. Raises Refused."""
    try:
        logic = importlib.import_module(LOGIC)
    except ModuleNotFoundError as e:
        if not (e.name or "").startswith("dljob.vendored"):
            raise
        raise Refused(
            "An editable installation of dljob cannot convert: use `pip install ./client`, or dljob-operator convert."
        ) from None
    try:
        return int(logic.convert_files(files, to, sys.stdout, sys.stderr))
    except ValueError as e:
        raise Refused(" ".join(str(e).split())) from None
