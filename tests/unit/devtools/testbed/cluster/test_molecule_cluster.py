"""Molecule deletes a cluster that it has created, and never another one; `make molecule` runs all scenarios."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[5]
TASKS = ROOT / "molecule" / "shared" / "tasks" / "cluster.yml"
PROGRAM = """
import pathlib, sys
with open("called", "a") as file:
    print(sys.argv[1], file=file)
sys.exit(1 if sys.argv[1] == "status" and not pathlib.Path("answers").exists() else 0)
"""
"""In the place of devtools.testbed.cluster."""


@pytest.mark.parametrize(
    ("exists", "answers", "called", "recorded"),
    [
        pytest.param(False, False, ["status", "up"], True, id="no cluster"),
        pytest.param(True, True, ["status"], False, id="a cluster that is up"),
        pytest.param(True, False, ["status", "up"], False, id="a cluster that does not answer in time"),
    ],
)
def test_only_its_own_cluster_is_recorded(
    tmp_path: Path, exists: bool, answers: bool, called: list[str], recorded: bool
) -> None:
    package = tmp_path / "devtools" / "testbed"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "cluster.py").write_text(PROGRAM)
    folder = tmp_path / "cluster"
    if exists:
        folder.mkdir()
        (folder / "state.json").write_text("{}")
    if answers:
        (tmp_path / "answers").touch()
    variables = {
        "project": str(tmp_path),
        "cluster_folder": str(folder),
        "ansible_python_interpreter": sys.executable,
    }
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "environment": {"PYTHONPATH": str(tmp_path)},
        "tasks": [{"ansible.builtin.include_tasks": str(TASKS)}],
    }
    (tmp_path / "play.yml").write_text(json.dumps([play]))
    done = subprocess.run(
        [str(Path(sys.executable).with_name("ansible-playbook")), "-c", "local", "-i", "localhost,", "-e",
         json.dumps(variables), str(tmp_path / "play.yml")],
        cwd=tmp_path, check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "called").read_text().split() == called
    assert (folder / "molecule-created").exists() == recorded


def test_make_molecule_runs_all_scenarios() -> None:
    found = re.search(r"^SCENARIOS \?= (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert found is not None
    assert sorted(found[1].split()) == sorted(path.parent.name for path in (ROOT / "molecule").glob("*/molecule.yml"))
