"""The TensorFlow programs without TensorFlow: arguments, environment, exit statuses."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import example_programs

program = example_programs.load("tensorflow/train_digits.py")
FILE = example_programs.TRAINING / "tensorflow" / "train_digits.py"
FILES = example_programs.ROOT / "roles" / "tensorflow" / "files"
SERVER = FILES / "parameter_server.py"
PAGE = FILES / "tensorboard.py"
MEMBERS = {"master": ["m:2222"], "worker": ["w:2222"], "ps": ["p:2222", "q:2222"]}


def config(type_: str = "master", index: int = 0, **members: list[str]) -> dict[str, str]:
    cluster = {type_: found for type_, found in {**MEMBERS, **members}.items() if found}
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": type_, "index": index}})}


def test_a_cluster() -> None:
    cluster = program.parse_cluster(config("ps", 1))
    assert (cluster.type, cluster.index, cluster.is_chief) == ("ps", 1, False)
    assert cluster.as_coordinated() == {"chief": ["m:2222"], "worker": ["w:2222"], "ps": ["p:2222", "q:2222"]}


@pytest.mark.parametrize("environment", [{}, {"TF_CONFIG": ""}, config(worker=[], ps=[])])
def test_alone(environment: dict[str, str]) -> None:
    assert program.parse_cluster(environment) is None


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"TF_CONFIG": "{"}, "TF_CONFIG is '{'"),
        ({"TF_CONFIG": "[]"}, "TF_CONFIG is"),
        (config("worker", 1), "this process is worker 1"),
        (config("worker", master=[]), "one chief"),
        (config(chief=["c:1"]), "one chief"),
        (config(ps=[]), "no ps"),
        (config(worker=[]), "no worker"),
        (config("evaluator", evaluator=["e:1"]), "the type evaluator"),
    ],
)
def test_a_cluster_that_cannot_train(environment: dict[str, str], said: str) -> None:
    with pytest.raises(program.BadEnvironmentError, match=said.replace("{", r"\{")):
        program.parse_cluster(environment)


def start(file: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    clean = {k: v for k, v in os.environ.items() if k != "TF_CONFIG"}
    command = [sys.executable, str(file), *arguments]
    return subprocess.Popen(
        command, env={**clean, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def end(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


def test_a_bad_environment_ends_with_2_and_one_line() -> None:
    status, _, err = end(start(FILE, TF_CONFIG="{"))
    assert status == 2
    assert err.startswith("error: TF_CONFIG is") and err.count("\n") == 1


def test_a_waiting_master_ends_on_a_signal() -> None:
    process = start(FILE, **config(worker=["worker.invalid:1"]))
    assert process.stdout is not None
    assert "waiting: the name worker.invalid does not resolve" in process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    assert end(process)[0] == 143


# ---- the default parameter server

SPEC = "--cluster_spec=master|m:1,ps|p:1;q:1"
STAND_IN = """
import threading
__version__ = "0"
class train:
    class Server:
        def __init__(self, cluster, job_name, task_index):
            print(sorted(cluster.items()), job_name, task_index)
        def join(self):
            {join}
"""


def server(folder: Path, join: str) -> subprocess.Popen[str]:
    """Start the program with a fake TensorFlow."""
    (folder / "tensorflow.py").write_text(STAND_IN.format(join=join))
    return start(SERVER, SPEC, "--job_name=ps", "--task_id=1", PYTHONPATH=str(folder), PYTHONUNBUFFERED="1")


def test_the_server_serves_until_it_is_ended(tmp_path: Path) -> None:
    process = server(tmp_path, "threading.Event().wait()")
    assert process.stdout is not None
    assert process.stdout.readline() == "[('master', ['m:1']), ('ps', ['p:1', 'q:1'])] ps 1\n"
    assert "serves as ps 1" in process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    assert end(process)[0] == 143


def test_a_server_that_is_ended_while_it_starts_ends(tmp_path: Path) -> None:
    """The serving thread sends the signal, so it arrives at any point before the main thread waits."""
    now = "import os, signal; os.kill(os.getpid(), signal.SIGTERM); threading.Event().wait()"
    assert [end(server(tmp_path, now))[0] for _ in range(10)] == [143] * 10


def test_a_server_that_is_ended_while_tensorflow_loads_ends(tmp_path: Path) -> None:
    (tmp_path / "tensorflow.py").write_text("import time; print('loads', flush=True); time.sleep(60)")
    process = start(SERVER, SPEC, "--job_name=ps", "--task_id=1", PYTHONPATH=str(tmp_path))
    assert process.stdout is not None
    assert process.stdout.readline() == "loads\n"
    process.send_signal(signal.SIGTERM)
    assert end(process)[0] == 143


@pytest.mark.parametrize("join", ["raise ValueError('no port')", "pass"])
def test_a_server_that_cannot_serve_ends_with_1(tmp_path: Path, join: str) -> None:
    status, _, err = end(server(tmp_path, join))
    assert status == 1
    assert ("no port" in err) == ("no port" in join)


def test_a_bad_cluster_is_reported(tmp_path: Path) -> None:
    (tmp_path / "tensorflow.py").write_text("")
    process = start(SERVER, "--cluster_spec=ps", "--job_name=ps", "--task_id=0", PYTHONPATH=str(tmp_path))
    status, _, err = end(process)
    assert status == 2 and "JOB|HOST:PORT" in err


@pytest.mark.parametrize("file", [SERVER, PAGE], ids=lambda f: f.name)
def test_programs_of_the_role_are_written_for_old_images_too(file: Path) -> None:
    """TensorFlow 1's images have Python 2.7: no annotations, no f-strings, no keyword-only arguments."""
    tree = ast.parse(file.read_text())
    newer: tuple[Any, ...] = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.AsyncFunctionDef, ast.Nonlocal)
    assert not [node for node in ast.walk(tree) if isinstance(node, newer)]
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert not [f for f in functions if f.returns or f.args.kwonlyargs or any(a.annotation for a in f.args.args)]


# ---- TensorBoard

PROGRAM = """
class WerkzeugServer:
    def __init__(self, wsgi_app, flags):
        wsgi_app({}, lambda status, headers: print(status, headers))
started = WerkzeugServer
"""
MAIN = """
from tensorboard import program
def run_main():
    headers = [("Content-Encoding", "identity"), ("Content-Encoding", "gzip"), ("X", "identity")]
    program.started(wsgi_app=lambda environ, start: start("200 OK", headers), flags=None)
"""


def run_tensorboard(folder: Path, **files: str) -> tuple[int, str, str]:
    """Run the program as a pod does, with ``files`` as a fake TensorBoard; returns status and output."""
    package = folder / "tensorboard"
    package.mkdir()
    for name, text in {"__init__": "", **files}.items():
        (package / f"{name}.py").write_text(text)
    command = folder / "bin" / "tensorboard"
    command.parent.mkdir()
    command.write_text('#!/bin/sh\necho "plain $@"\n')
    command.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", PAGE.read_text(), "--logdir", "/logs"],
        env={**os.environ, "PYTHONPATH": str(folder), "PATH": f"{command.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_tensorboard_drops_the_header_that_the_proxy_rejects(tmp_path: Path) -> None:
    status, out, err = run_tensorboard(tmp_path, program=PROGRAM, main=MAIN)
    assert (status, out) == (0, "200 OK [('Content-Encoding', 'gzip'), ('X', 'identity')]\n"), err


@pytest.mark.parametrize("files", [{}, {"program": "", "main": ""}], ids=["old", "unknown"])
def test_another_tensorboard_runs_unpatched(tmp_path: Path, files: dict[str, str]) -> None:
    assert run_tensorboard(tmp_path, **files)[:2] == (0, "plain --logdir /logs\n")
