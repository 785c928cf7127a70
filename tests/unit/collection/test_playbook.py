"""playbooks/reconcile.yml and its task with invalid input: they fail before they connect to a cluster."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from devtools.collection.environment import COLLECTIONS, environ

ROOT = Path(__file__).resolve().parents[3]


def play(tmp_path: Path, *arguments: str, playbook: Path = ROOT / "playbooks" / "reconcile.yml") -> str:
    command = ["ansible-playbook", str(playbook), *arguments]
    env = environ(KUBECONFIG=str(tmp_path / "none"), ANSIBLE_COLLECTIONS_PATH=str(COLLECTIONS))
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    return " ".join((done.stdout + done.stderr).split())


def test_without_a_job_the_playbook_says_how_to_give_one(tmp_path: Path) -> None:
    assert "Give the manifest with -e @job.yaml (one document per file)" in play(tmp_path)


def test_the_error_for_a_kind_without_a_role_names_the_known_kinds(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text("apiVersion: kubeflow.org/v1\nkind: ElasticDLJob\nmetadata: {name: x}\nspec: {}\n")
    said = play(tmp_path, "-e", f"@{job}")
    assert "has no role for ElasticDLJob.kubeflow.org; it has: Caffe2Job.kubeflow.org" in said


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, "missing required arguments: watches_file"),
        ({"watches_file": "watches.yaml", "name_space": "a"}, "name_space. Supported parameters include: context"),
    ],
)
def test_a_wrong_argument_of_the_task_that_applies_a_job_is_named(
    arguments: dict[str, Any], error: str, tmp_path: Path
) -> None:
    playbook = tmp_path / "play.yml"
    tasks = [{"dljob.operator.apply_job": arguments}]
    playbook.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]))
    assert error in play(tmp_path, "-i", "localhost,", "-c", "local", playbook=playbook)
