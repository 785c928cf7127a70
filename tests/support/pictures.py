"""The pictures of the documents that tests take."""

from __future__ import annotations

import os
from pathlib import Path

from devtools.paths import ROOT

ASKED = bool(os.environ.get("DLJOB_PICTURES"))
"""Whether this run writes them anew."""


def folder(otherwise: Path) -> Path:
    """docs/ if it was asked for, else the folder of a test that only sees whether it can."""
    return ROOT / "docs" if ASKED else otherwise
