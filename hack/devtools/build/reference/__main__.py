"""Writes ``docs/reference``, and rows that ``examples/README.md`` lacks; with ``--check`` reports the stale files."""

from __future__ import annotations

import sys

from devtools.build import generated
from devtools.build.reference import definitions, examples, operator_settings, pages, plugins
from devtools.paths import ROOT

FOLDER = ROOT / "docs" / "reference"


def files() -> dict[str, str]:
    """The generated text of every file below docs/reference."""
    made = {**definitions.pages(), **operator_settings.pages(), **plugins.pages(), **plugins.role_pages()}
    return {**made, "README.md": pages.index(made)}


def wanted() -> generated.Wanted:
    texts = {FOLDER / name: text for name, text in files().items()}
    strangers = [path for path in sorted(FOLDER.rglob("*.md")) if path not in texts]
    return generated.Wanted({**texts, examples.INDEX: examples.index()}, strangers=strangers)


if __name__ == "__main__":
    sys.exit(generated.main("reference", __doc__, "docs", wanted))
