"""The hooks of .pre-commit-config.yaml run the programs that `make lint` runs, at the same versions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from devtools.checks import lint

ROOT = Path(__file__).resolve().parents[3]
HOOKS: list[dict[str, Any]] = [
    hook
    for repository in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    for hook in repository["hooks"]
]
BY_ID = {hook["id"]: hook for hook in HOOKS}


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_a_hook_takes_its_program_from_the_environment_that_requirements_pin(hook: dict[str, Any]) -> None:
    """A hook from a repository could have another version than requirements-dev.txt."""
    assert hook["language"] == "system" and "rev" not in hook and "additional_dependencies" not in hook
    command = hook["entry"].removeprefix("env PYTHONPATH=hack ").split()
    program = Path(command[0])
    assert program.parent == Path(".venv/bin")
    assert program.name == "python" or any(program.name == linter[0] for linter in lint.LINTERS.values())


def test_every_linter_is_run_on_each_commit_or_is_named_as_slow() -> None:
    assert set(lint.ON_CHANGED_FILES) <= set(lint.LINTERS) and set(lint.SLOW) <= set(lint.LINTERS)
    on_commit = [hook["entry"] for hook in HOOKS if "stages" not in hook]
    for name in lint.ON_CHANGED_FILES:
        command = " ".join(word for word in lint.LINTERS[name] if word not in (*lint.CODE, ".", "--check"))
        assert any(entry.replace(" --force-exclude", "") == f".venv/bin/{command}" for entry in on_commit), name
    assert "env PYTHONPATH=hack .venv/bin/python -m devtools.checks.lint --quick" in on_commit
    assert BY_ID["lint"]["entry"] == "env PYTHONPATH=hack .venv/bin/python -m devtools.checks.lint" and BY_ID["lint"][
        "stages"
    ] == ["pre-push"]


def test_quick_leaves_out_no_other_linter() -> None:
    left_out = set(lint.LINTERS) - set(lint.chosen(quick=True))
    assert left_out == {*lint.SLOW, *lint.ON_CHANGED_FILES}
    assert lint.chosen(quick=False) == lint.LINTERS


def test_the_hooks_look_at_the_files_that_make_lint_looks_at() -> None:
    for name in ("ruff-check", "ruff-format"):
        pattern = re.compile(BY_ID[name]["files"])
        assert all(pattern.search(f"{folder}/deep/er.py") for folder in lint.CODE)
        assert not pattern.search("build/entrypoint/dljob-try"), "ruff detects Python files by suffix"
        assert not pattern.search("roles/x/files/y.py")
