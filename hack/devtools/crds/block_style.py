"""The YAML style of all generated files: block style that passes yamllint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yaml


def dumper(style: Callable[[str], str | None]) -> type[yaml.SafeDumper]:
    """A dumper that indents lists and writes no aliases, because not every reader of these files resolves aliases.

    ``style`` chooses how a text is written: ``>`` folded, ``|`` as it is, ``None`` plain or quoted.
    """

    class Block(yaml.SafeDumper):
        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            super().increase_indent(flow, False)

        def ignore_aliases(self, data: Any) -> bool:
            return True

    def represent(block: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        return block.represent_scalar("tag:yaml.org,2002:str", text, style=style(text))

    Block.add_representer(str, represent)
    return Block
