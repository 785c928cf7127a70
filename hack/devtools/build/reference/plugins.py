"""A page per role, from its argument specification, and one per plugin, from its DOCUMENTATION, EXAMPLES and RETURN.

Plugins are parsed without being imported.

Why not ``antsibull-docs collection-plugins --output-format simplified-rst``, its only format that needs no Sphinx (the
other one has directives of a Sphinx extension): with 2.28, its 15 pages of plugins and roles had 3,528 lines and
139 kB, and ours 593 lines and 38 kB. Its tables of options are HTML with inline styles, so that a diff, an editor and a
forge that shows no raw HTML in RST show no readable table; the options are sorted by name instead of by importance; and
much of a small page says how to install the collection. It runs ansible-doc, 6.5 s of processor time, which the check
of stale pages would cost each commit (now under 1 s). And its help calls the format experimental and announces
considerable changes. This module has 120 lines; ``make lint`` has antsibull-docs check the same
documentation.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from devtools.build.reference.pages import NOTE, code, markdown, paragraphs, table
from devtools.paths import ROOT

COLLECTION = "dljob.operator"
FOLDERS = {"modules": "task", "filter": "filter"}
"""An action plugin is documented in the module of the same name."""


def pages() -> dict[str, str]:
    """File name to text."""
    made = {}
    for folder, what in FOLDERS.items():
        for path in sorted((ROOT / "plugins" / folder).glob("*.py")):
            texts = constants(path)
            if "DOCUMENTATION" in texts:
                made[f"plugins/{path.stem}.md"] = page(what, path, texts)
    return made


def role_pages() -> dict[str, str]:
    """A page per role, from its argument specification: file name to text."""
    made = {}
    for path in sorted((ROOT / "roles").glob("*/meta/argument_specs.yml")):
        name = path.parts[-3]
        specified: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"]["main"]
        text = f"{NOTE}# {COLLECTION}.{name} (role)\n\n{specified['short_description']}.\n\n"
        text += "\n\n".join(paragraphs(specified["description"])) + "\n\n## Arguments\n\n"
        made[f"roles/{name}.md"] = text + table(["argument", "type", "description"], options(specified["options"], ""))
    return made


def constants(path: Path) -> dict[str, str]:
    """The upper-case string constants of a file and of its classes."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    classes = [node.body for node in module.body if isinstance(node, ast.ClassDef)]
    return {
        node.targets[0].id: node.value.value
        for node in itertools.chain(module.body, *classes)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }


def page(what: str, path: Path, texts: Mapping[str, str]) -> str:
    """The page of one plugin."""
    documented = _with_fragments(yaml.safe_load(texts["DOCUMENTATION"]))
    text = f"{NOTE}# {COLLECTION}.{path.stem} ({what})\n\n{markdown(documented['short_description'])}.\n\n"
    text += "\n\n".join(paragraphs(documented["description"])) + "\n"
    if documented.get("options"):
        text += "\n## Options\n\n" + table(["option", "type", "description"], options(documented["options"], ""))
    for name, attribute in (documented.get("attributes") or {}).items():
        description = " ".join(paragraphs(attribute.get("description")))
        text += f"\n`{name}`: {attribute['support']}. {description}\n"
    if texts.get("EXAMPLES"):
        text += f"\n## Examples\n\n```yaml\n{texts['EXAMPLES'].strip()}\n```\n"
    if texts.get("RETURN"):
        returned = yaml.safe_load(texts["RETURN"])
        text += "\n## Returned\n\n" + table(["key", "type", "description"], _returned(returned, ""))
    return text


def _with_fragments(documented: Mapping[str, Any]) -> Mapping[str, Any]:
    """``documented`` with the options of the fragments that it names; what it says of an option itself goes first."""
    found: dict[str, Any] = {}
    for name in documented.get("extends_documentation_fragment") or ():
        file, _, section = name.removeprefix(f"{COLLECTION}.").partition(".")
        texts = constants(ROOT / "plugins" / "doc_fragments" / f"{file}.py")
        found |= yaml.safe_load(texts[section.upper() or "DOCUMENTATION"])["options"]
    own = documented.get("options") or {}
    return {**documented, "options": {**own, **{name: {**found[name], **own.get(name, {})} for name in found}}}


def options(documented: Mapping[str, Any], path: str) -> Iterator[list[str]]:
    """A row for each option and suboption."""
    for name, option in documented.items():
        where = f"{path}{name}"
        yield [code(where), _type(option), " ".join(paragraphs(option.get("description")))]
        inner = "[]." if option.get("type") == "list" else "."
        yield from options(option.get("suboptions") or option.get("options") or {}, where + inner)


def _type(option: Mapping[str, Any]) -> str:
    parts = [str(option.get("type", "str"))]
    if option.get("elements"):
        parts[0] += f" of {option['elements']}"
    if option.get("required"):
        parts.append("required")
    if "default" in option:
        parts.append(f"default {code(option['default'])}")
    if option.get("choices"):
        parts.append("one of " + ", ".join(code(choice) for choice in option["choices"]))
    return ", ".join(parts)


def _returned(documented: Mapping[str, Any], path: str) -> Iterator[list[str]]:
    for name, value in documented.items():
        where = f"{path}{name}"
        when = f" Returned: {value['returned']}." if value.get("returned") else ""
        yield [code(where), _type(value), " ".join(paragraphs(value.get("description"))) + when]
        yield from _returned(value.get("contains") or {}, where + ("[]." if value.get("type") == "list" else "."))
