"""docs/ui.md: what dljob has is named with its test, and the tests exist."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.named_tests import exists

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "ui.md").read_text(encoding="utf-8")
HEAD, _, *ROWS = (
    [cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line[:1] == "|"
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row(row: list[str]) -> None:
    assert len(row) == len(HEAD) and all(row)
    assert row[-1] == "-" or exists(row[-1].strip("`")), row[-1]


def test_the_last_column_is_this_project() -> None:
    assert HEAD[-1] == "dljob"
    assert sum(row[-1] != "-" for row in ROWS) > len(ROWS) / 2
