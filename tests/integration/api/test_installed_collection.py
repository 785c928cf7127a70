"""The installed tarball of the collection reconciles a job. It uses the shared cluster, unlike the other tests of the tarball."""

from __future__ import annotations

import subprocess
from pathlib import Path

import yaml
from devtools.build.collection import tarball
from devtools.build.collection.environment import environ
from support.live_jobs import Cluster, v1_job


def test_its_playbook_reconciles_a_job(kubeconfig: Path, namespace: str, crds: None, tmp_path: Path) -> None:
    """Run by its full name from an empty folder, so that no file of the checkout is used."""
    installed = tarball.install(tarball.build(tmp_path / "built"), tmp_path / "installed")
    job = v1_job("installed")
    job["metadata"]["namespace"] = namespace
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "job.yaml").write_text(yaml.safe_dump(job))
    command = ["ansible-playbook", "dljob.operator.reconcile", "-e", "@job.yaml", "-vv"]
    env = environ(KUBECONFIG=str(kubeconfig), ANSIBLE_COLLECTIONS_PATH=str(installed.parents[2]))
    done = subprocess.run(command, cwd=empty, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    pods = Cluster(kubeconfig, namespace).core.list_namespaced_pod(namespace).items
    assert {p.metadata.name for p in pods} == {f"installed-{t}-0" for t in ("scheduler", "server", "worker")}
