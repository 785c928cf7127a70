"""`pip install dljob-operator`, then `dljob-operator run --install-crds` from an empty folder."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from devtools.build.collection import wheel
from devtools.checks.suite import session
from devtools.testbed.base.settings import cache_dir_from
from devtools.testbed.operator import free_port
from support.live_jobs import Cluster, until, v1_job

import dljob_operator


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` folder of an environment with nothing but the wheel and what it requires."""
    built = wheel.build(tmp_path_factory.mktemp("wheel"))
    return wheel.install(built, tmp_path_factory.mktemp("installed") / "venv", cache_dir_from(os.environ))


def environ(bin_dir: Path, home: Path) -> dict[str, str]:
    """A new user's: no PYTHONPATH, no ANSIBLE_*, and a home without collections."""
    return {"PATH": f"{bin_dir}:{os.environ['PATH']}", "HOME": str(home), "LC_ALL": "C.UTF-8"}


@contextmanager
def running(bin_dir: Path, folder: Path, *arguments: str, **more: str) -> Iterator[Path]:
    """The operator, ready; the file with its log. It must end well."""
    log = folder.with_suffix(".log")
    command = [str(bin_dir / "dljob-operator"), "run", *arguments]
    env = {**environ(bin_dir, folder), **more}
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=output, stderr=subprocess.STDOUT)
    try:
        until(lambda: "ready: " in log.read_text() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        yield log
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def run(bin_dir: Path, folder: Path, *command: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environ(bin_dir, folder), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_installed_alone_it_lacks_nothing_and_a_job_succeeds(
    installed: Path, cluster: Path, images: None, namespace: str, tmp_path: Path
) -> None:
    """One test, so that the environment is made once."""
    pip_finds_nothing_missing(installed, tmp_path)
    every_module_can_be_imported(installed, tmp_path)
    a_job_succeeds(installed, cluster, namespace, tmp_path)


def pip_finds_nothing_missing(installed: Path, tmp_path: Path) -> None:
    assert "No broken requirements found" in run(installed, tmp_path, str(installed / "python"), "-m", "pip", "check")
    said = run(installed, tmp_path, "dljob-operator", "--version")
    assert said == f"dljob-operator {dljob_operator.__version__}\n"


def every_module_can_be_imported(installed: Path, tmp_path: Path) -> None:
    """Also those that `run` does not need: each requirement is there. Those of the history are an extra's."""
    script = (
        "import pkgutil, importlib, dljob_operator as d\n"
        "found = [m.name for m in pkgutil.walk_packages(d.__path__, 'dljob_operator.') if '__main__' not in m.name]\n"
        "found = [name for name in found if not name.startswith('dljob_operator.history.')]\n"
        "[importlib.import_module(name) for name in [*found, 'dljob_operator.history.service']]\n"
        "print(len(found), d.__file__)"
    )
    count, _, place = run(installed, tmp_path, str(installed / "python"), "-c", script).partition(" ")
    assert int(count) > 30
    assert Path(place.strip()).is_relative_to(installed.parent)


def a_job_succeeds(installed: Path, cluster: Path, namespace: str, tmp_path: Path) -> None:
    """Definitions, watches file, roles and plugins are the wheel's own: nothing of the checkout is in reach."""
    (empty := tmp_path / "empty").mkdir()
    metrics = f"127.0.0.1:{free_port()}"
    arguments = ("--install-crds", "--namespace", namespace, "--metrics-bind-address", metrics)
    with running(installed, empty, *arguments, KUBECONFIG=str(cluster)) as log:
        manifest = v1_job("wheel", scheduler="exit 0")
        manifest["metadata"]["labels"] = {session.LABEL: "wheel"}
        job = Cluster(cluster, namespace).create(manifest)
        status = job.wait_end()
        assert status["state"] == "Succeeded"
        with urllib.request.urlopen(f"http://{metrics}/metrics", timeout=10) as answer:
            counted = answer.read().decode()
        assert 'dljob_reconciles_total{kind="kubeflow.org/v1 MXJob",result="ok"}' in counted
        assert 'dljob_reconciles_total{kind="kubeflow.org/v1 MXJob",result="failed"}' not in counted
        said = log.read_text()
        assert "CustomResourceDefinition installed crd=mxjobs.kubeflow.org" in said
        (watches_file,) = re.findall(r"watches_file=(\S+/watches\.yaml)", said)
        assert Path(watches_file).is_relative_to(installed.parent)
