"""The texts of generated files: the shared parts of a definition are written once, and the text is PyYAML's."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from devtools.build.generate import block_style
from devtools.build.generate.pod_schema import Compact

STYLE = block_style.dumper(lambda text: ">" if len(text) > 60 else None)
LONG = "a text of so many words that it is longer than a line of the file may be, which is 88 characters"
PART = Compact(
    type="object", nullable=True, properties=Compact({f"field{n}": Compact(type="string") for n in range(9)})
)
ODD = Compact({"default": "007", "pattern": "^[a-z]$", "text": LONG, "n": 1, "yes": True, "": Compact({}), "1": 1.5})


@pytest.mark.parametrize(
    "document",
    [
        {"a": PART},
        {"a": ODD, "b": {"c": ODD}},
        {"a": PART, "b": {"a": PART}, "c": {"d": {"a": PART, "e": PART}}},
        {"y": PART, "007": PART, "x: y": PART, "a longer name of a field than the others have": PART, "": PART},
        {"list": [{"first": PART, "second": PART}, [{"x": PART}], {"x": {"y": PART}}]},
        {"a": [PART], "b": [], "c": Compact({}), "d": Compact({"inner": [Compact(a=1), {"b": LONG}]})},
    ],
)
def test_it_is_what_pyyaml_writes(document: Any) -> None:
    expected = yaml.dump(document, Dumper=STYLE, sort_keys=False, width=88, allow_unicode=True)
    assert block_style.dump(document, STYLE, 88) == expected
