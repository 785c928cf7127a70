"""The hooks of .pre-commit-config.yaml, which `make lint` runs too."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
HOOKS: list[dict[str, Any]] = [
    hook
    for repository in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    for hook in repository["hooks"]
]
BY_ID = {hook["id"]: hook for hook in HOOKS}
PINNED = {line.partition("==")[0] for line in (ROOT / "requirements-dev.txt").read_text(encoding="utf-8").splitlines()}
PROGRAMS = {"lint-imports": "import-linter"}
"""Where a package's program has another name."""


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_a_hook_takes_its_program_from_the_environment_that_requirements_pin(hook: dict[str, Any]) -> None:
    """A hook from a repository could have another version than requirements-dev.txt."""
    assert hook["language"] == "system" and "rev" not in hook and "additional_dependencies" not in hook
    if hook["entry"] == "hack/subjects.sh":
        return
    wrapper, program, *rest = hook["entry"].split()
    assert wrapper == "hack/in-venv.sh"
    if program == "python":
        module = ROOT / "hack" / rest[1].replace(".", "/")
        assert rest[0] == "-m" and ((module / "__main__.py").is_file() or module.with_suffix(".py").is_file())
    else:
        assert PROGRAMS.get(program, program) in PINNED


def test_a_commit_waits_for_no_slow_linter() -> None:
    assert [hook["id"] for hook in HOOKS if hook.get("stages") == ["pre-push"]] == [
        "mypy",
        "ansible-lint",
        "antsibull-docs",
    ]


@pytest.mark.parametrize("name", ["ruff-check", "ruff-format"])
def test_ruff_looks_at_every_folder_with_python(name: str) -> None:
    pattern = re.compile(BY_ID[name]["files"])
    for folder in ("plugins", "src", "client", "hack", "benchmarks", "tests", "examples"):
        assert pattern.search(f"{folder}/deep/er.py")
    assert not pattern.search("build/entrypoint/dljob-try"), "ruff detects Python files by suffix"
