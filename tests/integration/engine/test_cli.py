"""`dljob-operator run` as a process: its output and exit code."""

from __future__ import annotations

import signal
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml
from devtools.testbed.operator import free_port
from integration.engine.support import GROUP, Jobs, Process, command, crd, environ_of, remove_crd, until

from dljob_operator import __version__
from dljob_operator.engine.kube import KubeApi


def _fails(*arguments: str, cwd: Path, **environ: str) -> str:
    """Run the command, which must fail, and return what it said on stderr."""
    done = subprocess.run(
        command("run", *arguments),
        cwd=cwd,
        env=environ_of(**environ),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.fixture
def project(tmp_path: Path, roles: Path) -> Path:
    """A directory as an operator's author has it: watches.yaml, roles, crds."""
    (tmp_path / "roles").symlink_to(roles / "roles")
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds" / "cli.yaml").write_text(yaml.safe_dump(crd("CliJob")))
    entry = {"group": GROUP, "version": "v1", "kind": "CliJob", "role": "said"}
    (tmp_path / "watches.yaml").write_text(yaml.safe_dump([{**entry, "role": "echo", "manageStatus": False}]))
    return tmp_path


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_it_installs_its_kinds_is_ready_runs_and_ends_well(
    kube: KubeApi, kubeconfig: Path, project: Path, namespace: str, processes: list[Process], signum: int
) -> None:
    remove_crd(kube, f"clijobs.{GROUP}")
    (project / "roles").unlink()
    (project / "roles" / "echo" / "tasks").mkdir(parents=True)
    (project / "roles" / "echo" / "tasks" / "main.yml").write_text(
        "- name: Say it\n  ansible.builtin.copy:\n"
        '    content: \'{{ ansible_operator_meta.name }} {{ lookup("env", "K8S_AUTH_KUBECONFIG") }}\'\n'
        f"    dest: {project}/said\n    mode: '0600'\n"
    )
    address = f"127.0.0.1:{free_port()}"
    arguments = ("--install-crds", "--kubeconfig", str(kubeconfig), "--namespace", namespace)
    process = Process(project, *arguments, "--metrics-bind-address", address, KUBECONFIG="/nowhere")
    processes.append(process)
    try:
        process.wait_ready()
        assert process.out == f"ready: watching {GROUP}/v1 CliJob\n"
        path = f"/apis/{GROUP}/v1/namespaces/{namespace}/clijobs"
        body: dict[str, Any] = {"apiVersion": f"{GROUP}/v1", "kind": "CliJob", "metadata": {"name": "j"}}
        kube.request("POST", path, body)
        until((project / "said").exists, "the role is run")
        assert (project / "said").read_text() == f"j {kubeconfig.resolve()}"
        counted = f'dljob_reconciles_total{{kind="{GROUP}/v1 CliJob",result="ok"}} '
        until(lambda: counted in _metrics(address), "the reconcile is counted")
        assert f'dljob_jobs{{kind="{GROUP}/v1 CliJob",namespace="{namespace}",state=""}} 1.0' in _metrics(address)
        assert process.end(signum) == 0
        assert "stopped" in process.err
    finally:
        remove_crd(kube, f"clijobs.{GROUP}")


def _metrics(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


def test_it_waits_for_a_kind_that_is_not_installed_and_names_the_command(
    kube: KubeApi, kubeconfig: Path, project: Path, processes: list[Process]
) -> None:
    remove_crd(kube, f"clijobs.{GROUP}")
    process = Process(project, KUBECONFIG=str(kubeconfig))
    processes.append(process)
    process.wait_ready()
    assert process.out == f"ready: watching nothing (not installed yet: {GROUP}/v1 CliJob)\n"
    assert "kubectl apply --server-side -f crds/" in process.err
    assert process.end() == 0


def test_a_signal_ends_it_although_a_run_never_would(
    kubeconfig: Path, project: Path, roles: Path, jobs: Jobs, processes: list[Process]
) -> None:
    record = project / "record"
    entry = {"group": GROUP, "version": "v1", "kind": "EchoJob", "role": "echo", "manageStatus": False}
    (project / "watches.yaml").write_text(yaml.safe_dump([{**entry, "vars": {"record_file": str(record)}}]))
    process = Process(
        project,
        *("--namespace", jobs.namespace, "--graceful-shutdown-timeout", "1s"),
        KUBECONFIG=str(kubeconfig),
        ANSIBLE_COLLECTIONS_PATH=str(roles / "collections"),
    )
    processes.append(process)
    process.wait_ready()
    jobs.create("a", wait_for=str(project / "never"))
    until(record.exists, "the run is in pending")
    assert process.end() == 0
    assert "ending runs that did not end" in process.err


def test_a_broken_watches_file_is_refused_by_name(project: Path, kubeconfig: Path) -> None:
    (project / "watches.yaml").write_text("- {group: a.b, version: v1, kind: X, role: nowhere, markUnsave: true}")
    said = _fails(cwd=project, KUBECONFIG=str(kubeconfig))
    assert "entry 1 (a.b/v1 X): markUnsave: unknown key; did you mean 'markUnsafe'?" in said
    assert "entry 1 (a.b/v1 X): role: the role 'nowhere' was not found" in said


def test_a_missing_watches_file_or_cluster_is_named(tmp_path: Path, project: Path) -> None:
    assert "cannot be read" in _fails("--watches-file", "none.yaml", cwd=tmp_path)
    said = _fails("--kubeconfig", str(tmp_path / "nowhere"), cwd=project)
    assert "no cluster configuration" in said
    assert "--kubeconfig" in said


def test_version() -> None:
    done = subprocess.run(command("--version"), env=environ_of(), capture_output=True, text=True, check=True)
    assert done.stdout == f"dljob-operator {__version__}\n"


def test_ansible_that_cannot_be_loaded_ends_it_with_the_reason(kubeconfig: Path, project: Path) -> None:
    (project / "broken" / "ansible").mkdir(parents=True)
    (project / "broken" / "ansible" / "__init__.py").write_text("raise RuntimeError('no Ansible today')")
    environ = environ_of(KUBECONFIG=str(kubeconfig))
    environ["PYTHONPATH"] = f"{project / 'broken'}:{environ['PYTHONPATH']}"
    done = subprocess.run(command("run"), cwd=project, env=environ, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "dljob-operator: Ansible could not be loaded: RuntimeError: no Ansible today" in done.stderr
