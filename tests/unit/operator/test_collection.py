"""The engine finds the collection whose `shared` package it imports, and the fork server leaves it to Ansible."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dljob_operator import collection

ROOT = Path(__file__).resolve().parents[3]


def test_without_the_collection_the_error_names_the_fix(tmp_path: Path) -> None:
    (tmp_path / "ansible_collections" / "kubernetes" / "core").mkdir(parents=True)
    with pytest.raises(ImportError, match="PYTHONPATH"):
        collection.require([str(tmp_path)])
    (tmp_path / collection.SHARED).mkdir(parents=True)
    collection.require(["/nowhere", str(tmp_path)])


def test_the_command_says_so_too(tmp_path: Path) -> None:
    (tmp_path / "dljob_operator").symlink_to(ROOT / "src" / "dljob_operator")
    # -S: without site-packages, where the development environment has the collection
    done = subprocess.run(
        [sys.executable, "-S", "-m", "dljob_operator", "--version"],
        cwd=tmp_path,
        env={},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "needs the collection dljob.operator" in done.stderr.splitlines()[-1]


def test_the_fork_server_leaves_the_collections_packages_to_ansible() -> None:
    """Ansible does not find the plugins of a collection whose packages were imported before its own loader is there."""
    program = "import sys, dljob_operator.runner.fork_server, dljob_operator.runner.playbook_runner as runner\n"
    program += "print([name for name in sys.modules if name.startswith('ansible_collections.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
