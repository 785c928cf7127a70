"""Each guarantee of docs/reliability.md names existing tests, and each large run what it does not cover."""

from __future__ import annotations

import re

from support.documents import ROOT

TEXT = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")


def rows(header: str) -> list[list[str]]:
    """The cells of the table whose first column has this name."""
    table = TEXT.partition(f"| {header} |")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.splitlines()[2:]]


def test_every_guarantee_names_tests_that_exist() -> None:
    assert len(rows("guarantee")) >= 15
    for guarantee, tests, runs in rows("guarantee"):
        named = re.findall(r"`(tests/[\w/]+\.py)`", tests)
        assert named, guarantee
        assert [name for name in named if not (ROOT / name).is_file()] == [], guarantee
        assert runs, guarantee


def test_every_large_run_says_what_it_leaves_out() -> None:
    assert len(rows("run")) >= 5
    for run, does, leaves_out in rows("run"):
        assert all((run, does, leaves_out)), run
