"""SECURITY.md is a short policy, and every threat of docs/threat-model.md names existing tests."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
POLICY = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
THREATS = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in THREATS.splitlines()
    if line.startswith("|") and not line.startswith(("| threat |", "| --- "))
]


def test_the_policy_is_short() -> None:
    assert len(POLICY.split()) <= 400
    assert {"## Report a vulnerability", "## Supported versions", "## Scope"} <= set(POLICY.splitlines())


def test_every_threat_has_an_answer_and_names_a_test() -> None:
    assert len(ROWS) >= 30
    for row in ROWS:
        assert len(row) == 3 and all(row), row
        assert "::test_" in row[2], row[0]


def test_every_named_test_exists() -> None:
    for threat, _, tests in ROWS:
        path = ""
        for given, name in re.findall(r"`(tests/[\w/]+\.py)?::(\w+)`", tests):
            path = given or path
            assert path, f"{threat} {name} follows no file"
            assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), f"{path} has no {name}"


def test_the_changelog_has_a_section_for_the_fixes_that_it_promises() -> None:
    assert "- [security_fixes, " in (ROOT / "changelogs" / "config.yaml").read_text(encoding="utf-8")
