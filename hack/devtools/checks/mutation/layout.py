"""What is mutated, which tests judge it, and the copy of the tree in which that happens."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from devtools.paths import ROOT, known_files

GROUPS = {
    "logic": "plugins/module_utils/logic",
    "api": "plugins/module_utils/api",
    "engine": "src/dljob_operator/engine",
}
TESTS = ("tests/unit/logic", "tests/unit/api", "tests/unit/shared", "tests/unit/operator")
SLOW_TESTS = ("test_shim", "test_runner_client", "test_batch_worker", "test_bridge", "test_signals", "test_supervision")
"""Tests of the Ansible runs and of ansible-operator's bridge: they start processes, and check none of these modules."""


def modules(root: Path, group: str) -> list[str]:
    """The modules of a group, relative to ``root``."""
    found = sorted((root / GROUPS[group]).rglob("*.py"))
    return [str(path.relative_to(root)) for path in found if path.name != "__init__.py"]


def test_files(root: Path) -> list[str]:
    found = sorted(path for folder in TESTS for path in (root / folder).rglob("test_*.py"))
    return [str(path.relative_to(root)) for path in found if not path.name.startswith(SLOW_TESTS)]


def copy(base: Path, root: Path = ROOT) -> Path:
    """Copy what git knows or would add into ``base``/tree, and make it the collection that Python finds first."""
    tree = base / "tree"
    for name in known_files(root=root):
        target = tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, target, follow_symlinks=False)
    (tree / ".venv").symlink_to(root / ".venv")
    collection = base / "collections" / "ansible_collections" / "dljob" / "operator"
    collection.parent.mkdir(parents=True)
    collection.symlink_to(tree)
    return tree


def environment(base: Path) -> dict[str, str]:
    """The environment of a process that uses the copy: its folders come before those of site-packages."""
    tree, collections = base / "tree", base / "collections"
    folders = [str(collections), *(str(tree / name) for name in ("src", "hack"))]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(folders),
        "ANSIBLE_COLLECTIONS_PATH": str(collections),
        "DLJOB_HYPOTHESIS": "few",
        "PYTHONHASHSEED": "0",
    }
