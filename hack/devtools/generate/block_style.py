"""The YAML style of all generated files: block style that passes yamllint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yaml

from devtools.generate.pod_schema import Compact


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
