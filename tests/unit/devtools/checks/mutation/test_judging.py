"""How a mutant is judged: the tests, the changed function, the limits, and the list of explained survivors."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from devtools.checks.mutation import layout, survivors, swap
from devtools.checks.mutation.baseline import Baseline
from devtools.checks.mutation.mutants import Mutant
from devtools.checks.mutation.survivors import Survivor
from devtools.paths import ROOT

MODULE = "plugins/module_utils/logic/x.py"
BUDGET = 4.0


def mutant(first: int, last: int) -> Mutant:
    return Mutant(MODULE, "AddNot", 0, first, last, first)


def test_the_tests_of_a_mutant_execute_its_statement_and_the_fastest_come_first() -> None:
    lines = {MODULE: {3: ["slow", "fast"], 4: ["other"], 9: ["fails"]}}
    baseline = Baseline({"slow": 0.5, "fast": 0.1, "other": 0.2}, lines, ["fails"])
    assert baseline.tests(mutant(3, 3), BUDGET) == ["fast", "slow"]
    assert baseline.tests(mutant(2, 4), BUDGET) == ["fast", "other", "slow"]
    assert baseline.tests(mutant(9, 9), BUDGET) == [], "a test that fails without a change judges nothing"


def test_tests_beyond_the_budget_are_left_out() -> None:
    baseline = Baseline({"fast": 0.1, "slow": BUDGET}, {MODULE: {3: ["slow", "fast"]}}, [])
    assert baseline.tests(mutant(3, 3), BUDGET) == ["fast"]
    assert baseline.tests(mutant(3, 3), BUDGET + 1) == ["fast", "slow"]


def test_the_tests_of_the_modules_own_file_come_first_whatever_they_cost() -> None:
    own = "tests/unit/logic/test_x.py::slow"
    baseline = Baseline({own: 2 * BUDGET, "fast": 0.1}, {MODULE: {3: ["fast", own]}}, [])
    assert baseline.tests(mutant(3, 3), BUDGET) == [own]


def test_a_constant_is_judged_by_whatever_uses_its_module() -> None:
    baseline = Baseline({"a": 0.1, "b": 0.2}, {MODULE: {1: [""], 3: ["", "b"], 5: ["a"]}}, [])
    assert baseline.tests(mutant(1, 1), BUDGET) == ["a", "b"]
    assert baseline.at_import(mutant(1, 1))
    assert not baseline.at_import(mutant(5, 5))


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("swapped", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SOURCE = """
import functools

def plain():
    return 1

class A:
    @property
    def field(self):
        return 1

@functools.cache
def cached():
    def inner():
        return 1
    return inner()

def outer():
    return cached()
"""


@pytest.mark.parametrize(
    ("place", "result"),
    [
        (0, lambda module: module.plain()),
        (1, lambda module: module.A().field),
        (2, lambda module: module.cached()),
    ],
)
def test_a_loaded_function_gets_the_code_of_the_changed_file(tmp_path: Path, place: int, result: Any) -> None:
    path = tmp_path / "swapped.py"
    path.write_text(SOURCE, encoding="utf-8")
    module = loaded(path)
    functions = swap.loaded_functions(tmp_path)
    parts = SOURCE.split("return 1")
    path.write_text("return 1".join(parts[: place + 1]) + "return 2" + "return 1".join(parts[place + 1 :]))
    assert swap.swap(path, functions)
    assert result(module) == 2


def test_a_change_outside_of_functions_needs_another_process(tmp_path: Path) -> None:
    path = tmp_path / "swapped.py"
    path.write_text("LIMIT = 1\n\ndef f():\n    return LIMIT\n", encoding="utf-8")
    module = loaded(path)
    functions = swap.loaded_functions(tmp_path)
    path.write_text("LIMIT = 2\n\ndef f():\n    return LIMIT\n", encoding="utf-8")
    assert not swap.swap(path, functions)
    assert module.f() == 1


# fork.forked adopts the orphans of the process that calls it, and ends them all: so it has one of its own
FORKED = """
import os, subprocess, sys, time
from devtools.checks.mutation.fork import adopt_orphans, forked
adopt_orphans()
def sleeps():
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    time.sleep(60)
def spins():
    while True:
        pass
print(forked(lambda: 3), forked(sleeps, idle=0.3), forked(spins, cpu=0.1))
print(open(f"/proc/self/task/{os.getpid()}/children").read().split())
"""


def test_limits_of_a_child_and_nothing_is_left_of_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED], env=layout_environment(), capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines() == ["3 None None", "[]"]


def layout_environment() -> dict[str, str]:
    return {"PYTHONPATH": f"{ROOT / 'hack'}:{ROOT / 'src'}"}


def row(state: str, before: str = "a", module: str = MODULE) -> dict[str, Any]:
    return {"module": module, "before": before, "after": "b", "state": state}


def test_a_survivor_with_a_reason_is_not_reported_and_not_counted() -> None:
    known = [Survivor(MODULE, "a", "b", "equivalent")]
    rows = [row("survived"), row("survived", "c"), row("killed"), row("timeout", "d"), row("untested", "e")]
    assert survivors.unexplained(rows, known) == [row("survived", "c"), row("untested", "e")]
    assert survivors.table(rows, known, "group")[2:] == ["| logic | 5 | 1 | 1 | 1 | 1 | 1 | 50% |"]
    assert survivors.table(rows, known, "module")[2:] == ["| `logic/x.py` | 5 | 1 | 1 | 1 | 1 | 1 | 50% |"]


def test_a_change_that_is_judged_anew_replaces_the_earlier_row() -> None:
    rows = [row("survived", "a"), row("killed", "b"), row("survived", "c")]
    assert survivors.latest([*rows, row("killed", "a")], 3) == [*rows[1:], row("killed", "a")]
    assert survivors.latest(rows, 3) == rows


def test_every_reason_is_about_a_line_that_is_still_there() -> None:
    """An entry about a line that has changed would hide nothing, and nobody would remove it."""
    for entry in survivors.load(ROOT / "tests" / "mutation" / "survivors.toml"):
        text = " ".join((ROOT / entry.module).read_text(encoding="utf-8").split())
        assert entry.before in text, entry
        assert entry.reason, entry


def test_the_copy_is_the_collection_that_python_finds(tmp_path: Path) -> None:
    tree = layout.copy(tmp_path)
    name = "ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse"
    code = f"import {name} as m, dljob_operator as e, os; print(os.path.realpath(m.__file__)); print(e.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=layout.environment(tmp_path), capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        str(tree / "plugins/module_utils/logic/parse/parse.py"),
        str(tree / "src/dljob_operator/__init__.py"),
    ]
