"""A page per role, from its argument specification."""

from __future__ import annotations

from typing import Any

import yaml

from devtools.build.reference.pages import NOTE, paragraphs, table
from devtools.build.reference.plugins import COLLECTION, options
from devtools.paths import ROOT


def pages() -> dict[str, str]:
    """File name to text."""
    made = {}
    for path in sorted((ROOT / "roles").glob("*/meta/argument_specs.yml")):
        name = path.parts[-3]
        specified: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"]["main"]
        text = f"{NOTE}# {COLLECTION}.{name} (role)\n\n{specified['short_description']}.\n\n"
        text += "\n\n".join(paragraphs(specified["description"])) + "\n\n## Arguments\n\n"
        made[f"roles/{name}.md"] = text + table(["argument", "type", "description"], options(specified["options"], ""))
    return made
