"""Which mutants a module has."""

from __future__ import annotations

from pathlib import Path

import pytest
from devtools.checks.mutation import mutants
from devtools.checks.mutation.mutants import Change, Mutant

MODULE = "module.py"


def changes(folder: Path, source: str) -> set[tuple[str, str]]:
    (folder / MODULE).write_text(source, encoding="utf-8")
    found = [mutants.mutated(source, mutant) for mutant in mutants.of_module(folder, MODULE)]
    made = [mutants.change(source, code) for code in found if code is not None]
    return {(each.before, each.after) for each in made}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < b\n", {("x = a < b", "x = a <= b"), ("x = a < b", "x = a >= b")}),
        ("x = a in b\n", {("x = a in b", "x = a not in b")}),
        ("x = a not in b\n", {("x = a not in b", "x = a in b")}),
        ("x = a is not None\n", {("x = a is not None", "x = a is None")}),
        ("def f(a):\n    return a\n", {("return a", "return None")}),
        ("def f(a):\n    return None\n", set()),
        ("f(a)\n", {("f(a)", "pass")}),
        ("x = f(a)\n", set()),
        ("x = f(a, b=c)\n", {("x = f(a, b=c)", "x = f(a, **{})")}),
        ("x = f(b=c)\n", {("x = f(b=c)", "x = f(**{})")}),
        ('x = {"k": v, **w}\n', {('x = {"k": v, **w}', 'x = {"<dropped>": v, **w}')}),
        ("x = [a for a in b if a]\n", {("x = [a for a in b if a]", "x = [a for a in b if not (a)]")}),
        ("x = y[a:b]\n", set()),
        (
            "try:\n    pass\nexcept (a.B, C):\n    pass\n",
            {("except (a.B, C):", "except (a.B, CosmicRayTestingException):")},
        ),
    ],
)
def test_the_changes_of_a_statement(tmp_path: Path, source: str, expected: set[tuple[str, str]]) -> None:
    assert changes(tmp_path, source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "x: int | None = y\n",
        "def f(a: int | None) -> int | None:\n    pass\n",
        "@dataclass(frozen=True)\nclass A:\n    pass\n",
        "def f(a, *, b):\n    pass\n",
        "f = lambda a, *, b: a\n",
    ],
)
def test_what_has_no_effect_is_not_changed(tmp_path: Path, source: str) -> None:
    assert changes(tmp_path, source) == set()


def test_a_mutant_has_the_lines_of_its_statement(tmp_path: Path) -> None:
    """Coverage knows a statement by its first line."""
    source = "def f(a):\n    x = g(\n        a,\n        key=1,\n    )\n    if a:\n        return x\n"
    (tmp_path / MODULE).write_text(source, encoding="utf-8")
    found = {(m.operator, m.first, m.last, m.line) for m in mutants.of_module(tmp_path, MODULE)}
    assert {("DropKeyword", 2, 5, 4), ("AddNot", 6, 6, 6), ("ReturnNone", 7, 7, 7)} <= found


def test_a_change_is_known_by_its_text() -> None:
    assert mutants.change("a\n  b  c\nd\n", "a\n  b x\nd\n") == Change("b c", "b x")


def test_a_sample_follows_from_its_seed() -> None:
    found = [Mutant(MODULE, "AddNot", number, 1, 1, 1) for number in range(100)]
    assert mutants.sample(found, 10, 1) == mutants.sample(found, 10, 1)
    assert mutants.sample(found, 10, 1) != mutants.sample(found, 10, 2)
    assert len(set(mutants.sample(found, 10, 1))) == 10
    assert set(mutants.sample(found, None, 1)) == set(found) == set(mutants.sample(found, 1000, 1))
