"""`ansible-playbook playbooks/reconcile.yml`: one reconcile without an operator, and a check mode that keeps its word."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import yaml
from support.live_jobs import Cluster, for_own_operator, v1_job

ROOT = Path(__file__).resolve().parents[2]


def play(own: Cluster, job_file: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    bin_ = Path(sys.executable).parent
    command = [str(bin_ / "ansible-playbook"), "playbooks/reconcile.yml", "-e", f"manifest={job_file}", *arguments]
    environment = {**os.environ, "KUBECONFIG": str(own.kubeconfig), "PATH": f"{bin_}:{os.environ['PATH']}"}
    environment["ANSIBLE_NOCOLOR"] = "1"
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def written(tmp_path: Path, own: Cluster, name: str) -> Path:
    manifest = for_own_operator(v1_job(name))
    manifest["metadata"]["namespace"] = own.namespace
    # kubectl reads a plain date and a plain time as strings, of which an annotation must be
    text = yaml.safe_dump(manifest).replace(
        "metadata:\n", "metadata:\n  annotations: {since: 2024-01-15, at: 12:30}\n", 1
    )
    path = tmp_path / "job.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_check_mode_shows_everything_and_changes_nothing(own: Cluster, namespace: str, tmp_path: Path) -> None:
    job_file = written(tmp_path, own, "dry")
    done = play(own, job_file, "--check", "--diff")
    assert done.returncode == 0, done.stdout + done.stderr
    for shown in (
        "Pod dry-scheduler-0",
        "Pod dry-worker-0",
        "Service dry-scheduler-0",
        "DMLC_PS_ROOT_URI",
        "MXJob dry",
    ):
        assert shown in done.stdout
    jobs = own.custom.list_namespaced_custom_object("kubeflow.org", "v1", namespace, "mxjobs")
    assert jobs["items"] == []
    assert own.core.list_namespaced_pod(namespace).items == []


def test_one_pass_creates_and_a_second_changes_nothing(own: Cluster, namespace: str, tmp_path: Path) -> None:
    job_file = written(tmp_path, own, "wet")
    first = play(own, job_file)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "changed=2" in first.stdout
    pods = own.core.list_namespaced_pod(namespace).items
    assert {p.metadata.name for p in pods} == {"wet-scheduler-0", "wet-server-0", "wet-worker-0"}
    owner = pods[0].metadata.owner_references[0]
    assert (owner.kind, owner.name, owner.controller) == ("MXJob", "wet", True)
    # until the pods move on, there is nothing to do
    done = play(own, job_file, "--check", "--diff")
    assert done.returncode == 0, done.stdout + done.stderr
    for kind in ("Pod", "Service"):
        assert f"{kind} wet" not in done.stdout, done.stdout


def test_error_names_the_field(own: Cluster, namespace: str, tmp_path: Path) -> None:
    manifest = for_own_operator(v1_job("wrong"))
    manifest["metadata"]["namespace"] = namespace
    manifest["spec"]["mxReplicaSpecs"]["Worker"]["replicas"] = -1
    job_file = tmp_path / "job.yaml"
    job_file.write_text(yaml.safe_dump(manifest), encoding="utf-8")
    done = play(own, job_file)
    assert done.returncode != 0
    assert "replicas" in done.stdout
