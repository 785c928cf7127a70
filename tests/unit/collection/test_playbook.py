"""playbooks/reconcile.yml and its task with invalid input: they fail before they connect to a cluster."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from devtools.build.collection.environment import COLLECTIONS, environ

ROOT = Path(__file__).resolve().parents[3]


def play(tmp_path: Path, *arguments: str, playbook: Path = ROOT / "playbooks" / "reconcile.yml") -> str:
    command = ["ansible-playbook", str(playbook), *arguments]
    env = environ(KUBECONFIG=str(tmp_path / "none"), ANSIBLE_COLLECTIONS_PATH=str(COLLECTIONS))
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    return " ".join((done.stdout + done.stderr).split())


def test_without_a_job_the_playbook_says_how_to_give_one(tmp_path: Path) -> None:
    assert "there is no job: give its manifest with -e manifest=job.yaml" in play(tmp_path)


HEAD = "apiVersion: kubeflow.org/v1\nkind: MXJob\n"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param(None, "No such file or directory", id="no file"),
        pytest.param("a: [", "while parsing a flow node", id="no YAML"),
        pytest.param("---\n", "has no job: it is empty. The kinds of jobs are Caffe2Job.kubeflow.org, ", id="empty"),
        pytest.param("a: 1\n---\n- 1\n", "document 2 is no object", id="a list"),
        pytest.param(f"{HEAD}spec: {{}}\n", "document 1: metadata.name: the job needs a name", id="no name"),
        pytest.param(f"{HEAD}metadata: {{name: x}}\nspec: {{a: .nan}}\n", "line 4, column 11", id="no JSON"),
        pytest.param(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
            "ConfigMap x, is no job: apply it with kubectl. The kinds of jobs are Caffe2Job.kubeflow.org, ",
            id="no job",
        ),
    ],
)
def test_what_is_wrong_with_a_manifest(text: str | None, error: str, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    if text is not None:
        file.write_text(text)
    said = play(tmp_path, "-e", f"manifest={file}")
    assert f"manifest: {file}" in said
    assert error in said


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("2024-01-15", "spec.since[1].day: 2024-01-15 is a date, not a string"),
        ("2024-01-15 10:30:00", "spec.since[1].day: 2024-01-15 10:30:00 is a point in time, not a string"),
        (".inf", "spec.since[1].day: inf is no number that JSON has"),
    ],
)
def test_a_value_that_ansible_has_read_otherwise_is_named(value: str, error: str, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(f"{HEAD}metadata: {{name: x}}\nspec: {{since: [a, {{day: {value}}}]}}\n")
    said = play(tmp_path, "-e", f"@{file}")
    assert f"{error}: Ansible reads YAML otherwise than kubectl; quote the value" in said
    assert "-e manifest=job.yaml in place of -e @job.yaml" in said


def test_without_a_name(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(f"{HEAD}metadata: {{}}\nspec: {{}}\n")
    assert "metadata.name: the job needs a name" in play(tmp_path, "-e", f"@{file}")


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
