"""docs/parity.md has no empty cell, a section per early operator, and names existing tests."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from devtools.images.manifests import folders

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs" / "parity.md").read_text(encoding="utf-8")
SECTIONS = re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]
EARLY_OPERATORS = (
    "the first mx-operator",
    "the second mx-operator",
    "dl-operator",
    "tensorflow/k8s",
    "caffe2-operator",
)
VERDICTS = ("same", "better", "different", "not yet", "not here")
TEST = re.compile(r"`((?:unit|integration|e2e)/[\w/]+\.py)::(\w+)`")

ROWS = [
    (section.partition("\n")[0], [cell.strip() for cell in line.strip("|").split(" | ")])
    for section in SECTIONS
    for line in section.splitlines()
    if line.startswith("|") and not line.startswith(("| promise", "| ---"))
]


@cache
def functions(path: str) -> frozenset[str]:
    """The tests of a file, including those in classes."""
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    return frozenset(n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))


@pytest.mark.parametrize("operator", EARLY_OPERATORS)
def test_every_early_operator_has_its_section(operator: str) -> None:
    assert [title for title, _ in ROWS if operator in title]


def test_no_cell_is_empty() -> None:
    for title, cells in ROWS:
        assert len(cells) == 3, (title, cells)
        assert all(cells), (title, cells)


def test_every_row_says_how_ours_compares() -> None:
    for title, (promise, ours, _) in ROWS:
        assert ours.startswith(VERDICTS), (title, promise, ours)


def test_every_test_that_is_named_exists() -> None:
    missing = sorted(
        f"{path}::{name}"
        for path, name in set(TEST.findall(TEXT))
        if not (ROOT / "tests" / path).is_file() or name not in functions(path)
    )
    assert missing == []


def test_what_no_test_shows_says_why() -> None:
    for title, (promise, ours, shown) in ROWS:
        if not TEST.search(shown):
            assert ours.startswith(("not yet", "not here", "different")), (title, promise)
            assert len(shown) > 20, (title, promise, "say why no test shows it")


def test_every_manifest_of_theirs_is_applied_by_an_end_to_end_test() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "e2e").glob("test_*.py"))
    names = {path.name for folder in folders() for path in folder.glob("*.yaml")}
    assert len(names) >= 10
    assert sorted(name for name in names if f'"{name}"' not in tests) == []
