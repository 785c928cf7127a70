"""Writes ``docs/reference``; with ``--check`` reports the files that are out of date, and then exits with 1."""

from __future__ import annotations

import sys

from devtools.build import generated
from devtools.build.reference import definitions, pages, plugins, roles
from devtools.paths import ROOT

FOLDER = ROOT / "docs" / "reference"


def files() -> dict[str, str]:
    """The generated text of every file below docs/reference."""
    made = {**definitions.pages(), **plugins.pages(), **roles.pages()}
    return {**made, "README.md": pages.index(made)}


def wanted() -> generated.Wanted:
    texts = {FOLDER / name: text for name, text in files().items()}
    return generated.Wanted(texts, strangers=[path for path in sorted(FOLDER.rglob("*.md")) if path not in texts])


if __name__ == "__main__":
    sys.exit(generated.main("reference", __doc__, "docs", wanted))
