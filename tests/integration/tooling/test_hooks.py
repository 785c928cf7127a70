"""git runs the hooks that `make hooks` installs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BIN = Path(sys.executable).parent


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the commit-msg hook and the files that it needs."""
    for name in [name for name in os.environ if name.startswith(("GIT_", "PRE_COMMIT"))]:
        monkeypatch.delenv(name)  # set while a hook runs these tests
    monkeypatch.setenv("HOME", str(tmp_path))  # without the user's hooks and signing
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    here = tmp_path / "checkout"
    (here / "hack").mkdir(parents=True)
    shutil.copy(ROOT / "hack/subjects.sh", here / "hack")
    shutil.copy(ROOT / ".pre-commit-config.yaml", here)
    (here / ".venv").symlink_to(BIN.parent)
    for command in (
        ["git", "init", "--quiet"],
        ["git", "config", "user.name", "Test"],
        ["git", "config", "user.email", "test@example.invalid"],
        [str(BIN / "pre-commit"), "install", "--hook-type", "commit-msg"],
    ):
        subprocess.run(command, cwd=here, check=True, capture_output=True)
    return here


def commit(checkout: Path, subject: str) -> subprocess.CompletedProcess[str]:
    command = ["git", "commit", "--allow-empty", "-m", subject]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)


def test_git_refuses_a_commit_whose_subject_is_not_imperative(checkout: Path) -> None:
    refused = commit(checkout, "Added a thing")
    assert refused.returncode != 0 and "Add, not Added" in refused.stdout + refused.stderr
    taken = commit(checkout, "Add a thing")
    assert taken.returncode == 0, taken.stdout + taken.stderr
