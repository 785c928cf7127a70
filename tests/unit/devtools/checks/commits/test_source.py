"""Subjects from message files and from a real repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from devtools.checks.commits import source
from devtools.checks.commits.__main__ import main


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A main branch with an old, invalid subject, and a topic branch on top of it."""
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):  # set while a hook runs these tests
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))  # without the user's hooks and signing
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    commit(tmp_path, "added what was there before")
    git(tmp_path, "switch", "--quiet", "-c", "topic")
    return tmp_path


def git(repository: Path, *arguments: str) -> None:
    who = ["-c", "user.name=Test", "-c", "user.email=test@example.invalid"]
    subprocess.run(["git", *who, *arguments], cwd=repository, check=True, capture_output=True)


def commit(repository: Path, message: str) -> None:
    git(repository, "commit", "--quiet", "--allow-empty", "-m", message)


def test_a_range_begins_where_the_branch_left_main(repository: Path) -> None:
    commit(repository, "Add one\n\nbody")
    commit(repository, "Add two")
    git(repository, "switch", "--quiet", "main")
    commit(repository, "Meanwhile on main")
    git(repository, "switch", "--quiet", "topic")
    git(repository, "merge", "--quiet", "--no-edit", "main")
    assert [subject for _, subject in source.from_range(repository, "main", "HEAD")] == ["Add one", "Add two"]


def test_the_command_fails_for_a_bad_subject_of_the_branch_only(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(repository)
    commit(repository, "Add one")
    assert main(["range", "main"]) == 0
    commit(repository, "Added two")
    assert main(["range", "main"]) == 1
    printed = capsys.readouterr().out
    assert "Added two" in printed and "Add one" not in printed and "before" not in printed


def test_an_unknown_base_is_reported_with_the_fix(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(repository)
    assert main(["range"]) == 2
    assert "origin/main" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("Add one\n\nWhy.\n", "Add one"),
        ("\n# a hint of git's\nAdd one\n", "Add one"),
        ("# only hints\n", ""),
        (f"{source.SCISSORS}\ndiff --git a b\n", ""),
        ("", ""),
    ],
)
def test_the_subject_of_a_message(text: str, subject: str) -> None:
    assert source.from_message(text) == subject


def test_the_hook_reads_the_file_that_git_names(tmp_path: Path) -> None:
    file = tmp_path / "COMMIT_EDITMSG"
    file.write_text("Add one\n\nAdded is fine here.\n")
    assert main(["message", str(file)]) == 0
    file.write_text("Added one\n")
    assert main(["message", str(file)]) == 1
