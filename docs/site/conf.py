"""Sphinx' settings for the documentation site: `make docs-site` builds it."""

from __future__ import annotations

from pathlib import Path

project = "dljob-operator"
release = version = (Path(__file__).parents[2] / "VERSION").read_text(encoding="utf-8").strip()
root_doc = "index"
extensions = ["myst_parser"]
myst_heading_anchors = 4
nitpicky = True
html_theme = "furo"
html_title = f"dljob-operator {release}"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
