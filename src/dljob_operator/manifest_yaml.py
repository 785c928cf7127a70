"""Writes YAML that kubectl understands; the collection's `shared/manifest_yaml.py` reads it."""

from __future__ import annotations

import re
from typing import Any

import yaml

_FLOAT, _BOOL, _STR = (f"tag:yaml.org,2002:{name}" for name in ("float", "bool", "str"))
_DIGITS = list("-+.0123456789")


def write(document: Any, *, allow_unicode: bool = True) -> str:
    """``document`` as YAML, with its keys in their order; without ``allow_unicode`` in ASCII."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=allow_unicode, width=110)


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
