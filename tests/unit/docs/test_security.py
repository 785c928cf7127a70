"""Every part of SECURITY.md's threat model names existing tests."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_every_part_names_tests_that_exist() -> None:
    parts = TEXT.partition("## Threat model")[2].split("\n### ")[1:]
    assert len(parts) >= 5
    path = ""
    for part in parts:
        named = re.findall(r"`(tests/[\w/]+\.py)?::(\w+)`", part)
        assert named, f"{part.splitlines()[0]}: no test is named"
        for given, name in named:
            path = given or path
            assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), f"{path} has no {name}"


def test_every_statement_names_a_test() -> None:
    parts = TEXT.partition("## Threat model")[2].split("\n### ")[1:]
    statements = [statement for part in parts for statement in part.split("\n- ")[1:]]
    assert len(statements) >= 20
    assert [statement.splitlines()[0] for statement in statements if "::test_" not in statement] == []


def test_the_changelog_has_a_section_for_the_fixes_that_it_promises() -> None:
    assert "- [security_fixes, " in (ROOT / "changelogs" / "config.yaml").read_text(encoding="utf-8")
