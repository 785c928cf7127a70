"""A reconcile with the other end of the range of versions, against a real API server."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml
from devtools.build.collection import oldest
from devtools.testbed.base.settings import cache_dir_from
from support.live_jobs import Cluster, v1_job

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def oldest_bin() -> Path:
    return oldest.environment(cache_dir_from(os.environ))


def test_a_reconcile_with_the_oldest_versions(
    oldest_bin: Path, kubeconfig: Path, namespace: str, crds: None, tmp_path: Path
) -> None:
    """`ansible-playbook playbooks/reconcile.yml` against a real API server; a string that looks like a template stays."""
    job = v1_job("oldest", worker="echo '{{ 6 * 7 }}'; sleep 1")
    job["metadata"]["namespace"] = namespace
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    command = [str(oldest_bin / "ansible-playbook"), "playbooks/reconcile.yml", "-e", f"manifest={tmp_path}/job.yaml"]
    command += ["--diff"]
    env = oldest.child_environ(oldest_bin, KUBECONFIG=str(kubeconfig))
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    pods = {p.metadata.name: p for p in Cluster(kubeconfig, namespace).core.list_namespaced_pod(namespace).items}
    assert set(pods) == {f"oldest-{t}-0" for t in ("scheduler", "server", "worker")}
    assert "{{ 6 * 7 }}" in pods["oldest-worker-0"].spec.containers[0].command[-1]
