"""The tests that documents name, as ``unit/docs/test_parity.py::test_every_promise_has_a_verdict``."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAME = re.compile(r"((?:unit|integration|e2e)/[\w/]+\.py)::(\w+)")


def exists(name: str) -> bool:
    """Whether there is a test of this name, be it in a class."""
    found = NAME.fullmatch(name)
    return bool(found and (ROOT / found[1]).is_file() and found[2] in _functions(found[1]))


@cache
def _functions(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))
