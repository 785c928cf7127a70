"""Reads and writes YAML as kubectl understands it: PyYAML follows YAML 1.1 in points in which kubectl does not."""

from __future__ import annotations

import re
from typing import Any

import yaml

_INT, _FLOAT, _BOOL, _STR = (f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "str"))
_READ_OTHERWISE = (_INT, _FLOAT, "tag:yaml.org,2002:timestamp")
_DIGITS = list("-+.0123456789")


def read(text: str) -> list[Any]:
    """The documents of ``text``. Raises yaml.YAMLError."""
    return list(yaml.load_all(text, Loader=_Loader))


def write(document: Any) -> str:
    """``document`` as YAML, with its keys in their order."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


class _Loader(yaml.SafeLoader):
    """Reads a plain scalar as kubectl does: no date is a timestamp, and 1:30 is no number of base 60."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag not in _READ_OTHERWISE]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    _INT,
    re.compile(r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)$"),
    [first for first in _DIGITS if first != "."],
)
_Loader.add_implicit_resolver(
    _FLOAT,
    re.compile(
        r"[-+]?([0-9][0-9_]*\.[0-9_]*([eE][-+]?[0-9]+)?|[0-9][0-9_]*[eE][-+]?[0-9]+|\.[0-9][0-9_]*([eE][-+]?[0-9]+)?"
        r"|\.(inf|Inf|INF))$|\.(nan|NaN|NAN)$"
    ),
    _DIGITS,
)


class _Dumper(yaml.SafeDumper):
    """Writes no anchors: they would connect parts that the source did not connect.

    It quotes each string that kubectl would read as a number or a truth value, as "1e-4", "08" and "y", which PyYAML
    would not.
    """

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _string(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(_STR, text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _string)
_Dumper.add_implicit_resolver(_FLOAT, re.compile(r"[-+]?\.?[0-9][0-9a-zA-Z_.+-]*$"), _DIGITS)
_Dumper.add_implicit_resolver(_BOOL, re.compile(r"[yYnN]$"), list("yYnN"))
