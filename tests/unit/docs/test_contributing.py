"""CONTRIBUTING.md prints the role that tests/e2e/test_new_framework.py runs."""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]


def printed(file: str) -> object:
    """The content of the code block that follows the file's name in the document."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.search(rf"`{re.escape(file)}`:\n\n((?: {{7}}.*\n|\n)+)", text)
    assert found, f"CONTRIBUTING.md has no block for {file}"
    return yaml.safe_load(textwrap.dedent(found[1]))


def constant(name: str) -> object:
    """The YAML text that the end-to-end test assigns to ``name``."""
    tree = ast.parse((ROOT / "tests" / "e2e" / "test_new_framework.py").read_text(encoding="utf-8"))
    texts = {
        target.id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return yaml.safe_load(texts[name])


@pytest.mark.parametrize(
    ("file", "name"), [("roles/echo/vars/main.yml", "ROLE_VARS"), ("roles/echo/tasks/main.yml", "ROLE_TASKS")]
)
def test_the_documented_role_is_the_tested_one(file: str, name: str) -> None:
    assert printed(file) == constant(name)
