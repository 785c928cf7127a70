"""The roles' argument specs: they reject wrong arguments of a playbook, and cost an engine nothing."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from devtools.build.collection.environment import COLLECTIONS, environ

ROOT = Path(__file__).resolve().parents[3]
ROLES = sorted(path.name for path in (ROOT / "roles").iterdir() if path.is_dir())


def specification(role: str) -> dict[str, Any]:
    made = yaml.safe_load((ROOT / f"roles/{role}/meta/argument_specs.yml").read_text())["argument_specs"]["main"]
    return dict(made)


def play(tmp_path: Path, role: str, **variables: Any) -> subprocess.CompletedProcess[str]:
    tasks = [{"ansible.builtin.include_role": {"name": f"dljob.operator.{role}"}, "vars": variables}]
    playbook = tmp_path / "play.yml"
    playbook.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]))
    command = ["ansible-playbook", "-i", "localhost,", "-c", "local", str(playbook)]
    # with a missing kubeconfig, an Ansible run that connects to the cluster fails
    env = environ(KUBECONFIG=str(tmp_path / "none"), ANSIBLE_COLLECTIONS_PATH=str(COLLECTIONS))
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_documents_what_its_tasks_and_defaults_name(role: str) -> None:
    options = specification(role)["options"]
    defaults = ROOT / f"roles/{role}/defaults/main.yml"
    named = yaml.safe_load(defaults.read_text()) if defaults.is_file() else {}
    assert {name: options[name]["default"] for name in named} == named
    assert all(option["description"] for option in options.values())


def test_a_wrong_argument_is_reported(tmp_path: Path) -> None:
    done = play(tmp_path, "mxnet", dljob_jobs=["digits"])
    assert done.returncode == 2
    assert "Validation of arguments failed" in done.stdout
    assert "dljob_jobs" in done.stdout


def test_a_missing_argument_is_reported(tmp_path: Path) -> None:
    done = play(tmp_path, "dljob")
    assert done.returncode == 2
    assert "missing required arguments: dljob_framework" in done.stdout


def test_a_valid_argument_passes(tmp_path: Path) -> None:
    done = play(tmp_path, "mxnet", dljob_jobs=[])
    assert done.returncode == 0, done.stdout + done.stderr
