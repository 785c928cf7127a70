"""The role of DLJobs in Ansible: it loads the frameworks, and is ready to be a worker."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from devtools.build.collection.environment import COLLECTIONS, environ

ROOT = Path(__file__).resolve().parents[3]


def play(tmp_path: Path, environment: dict[str, str], **variables: Any) -> subprocess.CompletedProcess[str]:
    tasks = [
        {
            "ansible.builtin.include_role": {"name": "dljob.operator.any_framework"},
            "vars": {"dljob_jobs": []} | variables,
        }
    ]
    playbook = tmp_path / "play.yml"
    playbook.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]))
    command = ["ansible-playbook", "-vv", "-i", "localhost,", "-c", "local", str(playbook)]
    # with a missing kubeconfig, an Ansible run that connects to the cluster fails
    env = environ(KUBECONFIG=str(tmp_path / "none"), ANSIBLE_COLLECTIONS_PATH=str(COLLECTIONS), **environment)
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_it_loads_the_frameworks_of_the_folders(tmp_path: Path) -> None:
    done = play(tmp_path, {}, any_framework_folders=[str(ROOT / "tests/e2e/new_framework/roles")])
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_folder_of_the_environment_that_has_no_role(tmp_path: Path) -> None:
    done = play(tmp_path, {"DLJOB_FRAMEWORKS": f"{tmp_path}/none:{tmp_path}"})
    assert done.returncode == 2
    assert f"frameworks: {tmp_path}/none has no role with vars/main.yml" in done.stdout
