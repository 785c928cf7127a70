"""The YAML style of all generated files: block style that passes yamllint."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import yaml

from devtools.build.generate.pod_schema import Compact


def dumper(style: Callable[[str], str | None], short: int = 0) -> type[yaml.SafeDumper]:
    """A dumper that indents lists and writes no aliases, because not every reader of these files resolves aliases.

    ``style`` chooses how a text is written: ``>`` folded, ``|`` as it is, ``"`` quoted, ``None`` plain or quoted. A
    list of words with fewer than ``short`` characters together is on one line.
    """

    class Block(yaml.SafeDumper):
        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            super().increase_indent(flow, False)

        def ignore_aliases(self, data: Any) -> bool:
            return True

    def represent(block: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        return block.represent_scalar("tag:yaml.org,2002:str", text, style=style(text))

    def represent_list(block: yaml.SafeDumper, items: list[Any]) -> yaml.SequenceNode:
        words = all(isinstance(item, str) and " " not in item for item in items)
        one_line = words and sum(len(item) + 2 for item in items) < short
        return block.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=one_line or None)

    def represent_compact(block: yaml.SafeDumper, schema: Compact) -> yaml.MappingNode:
        return block.represent_mapping("tag:yaml.org,2002:map", schema, flow_style=True)

    Block.add_representer(str, represent)
    Block.add_representer(Compact, represent_compact)
    Block.add_representer(list, represent_list)
    return Block


_MARK = "\ue000"
"""A character that no text has: it is for private use."""
_PART = re.compile(rf"^(?P<before> *(?:- )*)\S.*: {_MARK}(?P<number>\d+)$", re.MULTILINE)


def dump(document: Any, style: type[yaml.SafeDumper], width: int) -> str:
    """The YAML text of ``document``, in lines of ``width`` characters.

    PyYAML takes half of the generator's time. Definitions have the same compact parts many times, so it writes each of
    them once for a key and an indentation, on which the ends of its lines depend.
    """
    parts: list[tuple[str, str]] = []
    text = _text(_cut(document, parts), style, width)

    def part(found: re.Match[str]) -> str:
        before: str = found["before"]
        key, content = parts[int(found["number"])]
        return before + _part(len(before), key, content, style, width)  # type: ignore[arg-type]  # a class has a hash

    return _PART.sub(part, text)


def _cut(value: Any, parts: list[tuple[str, str]]) -> Any:
    """``value`` with a mark for each compact part, whose key and JSON text go into ``parts``."""
    if isinstance(value, list):
        return [_cut(one, parts) for one in value]
    if isinstance(value, Compact) or not isinstance(value, Mapping):
        return value
    found = {}
    for key, one in value.items():
        if isinstance(one, Compact) and key:  # the value of an empty key is in a line of its own
            found[key] = f"{_MARK}{len(parts)}"
            parts.append((key, json.dumps(one)))
        else:
            found[key] = _cut(one, parts)
    return found


@functools.cache
def _part(indent: int, key: str, content: str, style: type[yaml.SafeDumper], width: int) -> str:
    """``key: {..}`` as it is at this indentation, an even number."""
    nested: Any = {key: Compact(json.loads(content))}
    above = ""
    for level in reversed(range(0, indent, 2)):
        nested = {"above": nested}
        above = f"{' ' * level}above:\n{above}"
    return _text(nested, style, width).removeprefix(above + " " * indent).removesuffix("\n")


def _text(document: Any, style: type[yaml.SafeDumper], width: int) -> str:
    return str(yaml.dump(document, Dumper=style, sort_keys=False, width=width, allow_unicode=True))
