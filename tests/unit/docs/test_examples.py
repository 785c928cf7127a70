"""Exactly one test runs each example, and each example contains its command and is listed in the index."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml
from devtools.build.reference import examples
from support.example_outcomes import ELSEWHERE, EXAMPLES, OUTCOMES

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted(path.name for path in EXAMPLES.glob("*.yaml"))


def test_each_is_run_by_exactly_one_test() -> None:
    """Those in neither table are run by test_examples.py, and succeed."""
    assert not OUTCOMES.keys() & ELSEWHERE.keys()
    assert OUTCOMES.keys() | ELSEWHERE.keys() <= set(FILES)


AGAIN = ("test_deployment.py",)
"""`dljob-try` uses an example that a test runs."""


@pytest.mark.parametrize(("file", "test"), ELSEWHERE.items())
def test_only_its_own_test_names_it(file: str, test: str) -> None:
    path, _, function = test.partition("::")
    text = (ROOT / path).read_text(encoding="utf-8")
    assert function in {n.name for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)}
    modules = sorted((ROOT / "tests" / "e2e").glob("*.py"))
    naming = [p.name for p in modules if p.name not in AGAIN and file in p.read_text(encoding="utf-8")]
    assert naming == [Path(path).name]


@pytest.mark.parametrize("file", FILES)
def test_its_first_lines_describe_it(file: str) -> None:
    text = (EXAMPLES / file).read_text(encoding="utf-8")
    comment = re.match(r"(#.*\n)+", text)
    assert comment, "it begins with a comment"
    assert f"kubectl create -f examples/{file}" in comment.group()
    assert file.removesuffix(".yaml") in [document["metadata"]["name"] for document in yaml.safe_load_all(text)]


def test_the_index_has_a_row_for_each() -> None:
    rows = re.findall(r"^\| \[([^]]+)\]\(([^)]+)\) \|(.+)\|$", (EXAMPLES / "README.md").read_text(), re.MULTILINE)
    assert sorted(name for name, _, _ in rows) == FILES
    for name, target, cells in rows:
        assert target == name
        assert len(cells.split(" | ")) == 3
        assert all(cell.strip() for cell in cells.split(" | ")), name


def test_the_index_gets_a_row_for_a_new_file(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# E\n\n| a |\n| --- |\n| [b.yaml](b.yaml) | B | x | y |\n\nEnd.\n")
    head = "# Two processes print\n# their ranks. Five seconds.\n#   kubectl create -f examples/echo.yaml\n"
    (tmp_path / "echo.yaml").write_text(f"{head}apiVersion: example.com/v1\nkind: EchoJob\n")
    (tmp_path / "b.yaml").write_text("kind: BJob\n")
    row = "| [echo.yaml](echo.yaml) | EchoJob, v1 | Two processes print their ranks | Succeeded |\n"
    assert examples.index(tmp_path).endswith(f"| x | y |\n{row}\nEnd.\n")
