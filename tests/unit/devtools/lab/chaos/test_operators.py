"""How the processes of an operator are found."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from devtools.lab.chaos import operators
from devtools.lab.chaos.operators import MARK, Operator, role_of

PARENTS = {10: 1, 11: 10, 12: 11, 13: 1}
"""Main, fork server, worker, and a process whose parent has gone."""


@pytest.mark.parametrize(("pid", "role"), [(10, "main"), (11, "fork server"), (12, "worker"), (13, "")])
def test_the_role_of_a_process_follows_from_its_parents(pid: int, role: str) -> None:
    assert role_of(pid, 10, PARENTS) == role


def test_a_process_is_found_by_the_start_that_it_belongs_to() -> None:
    mark = f"{os.getpid()}-test-0"
    command = [sys.executable, "-c", "print('up', flush=True); input()"]
    with subprocess.Popen(
        command, env={**os.environ, MARK: mark}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert operators.processes_with(mark) == [child.pid]
        assert operators.processes_with(f"{mark}0") == []
        assert operators.processes_started() == [child.pid]
        child.kill()
    assert operators.processes_started() == []


def test_what_an_earlier_start_has_left_is_resumed_too(tmp_path: Path) -> None:
    """A stopped process whose operator was killed meanwhile could never end."""
    operator = Operator("a", tmp_path / "kubeconfig", tmp_path, (), 0)
    environment = {**os.environ, MARK: operator.mark(0)}
    with subprocess.Popen([sys.executable, "-c", "input()"], env=environment, stdin=subprocess.PIPE) as child:
        os.kill(child.pid, signal.SIGSTOP)
        os.waitpid(child.pid, os.WUNTRACED)
        operator.resume()
        found, status = os.waitpid(child.pid, os.WCONTINUED | os.WNOHANG)
        child.kill()
    assert found == child.pid
    assert os.WIFCONTINUED(status)


def test_nothing_is_stopped_of_an_operator_that_does_not_run(tmp_path: Path) -> None:
    assert not Operator("a", tmp_path / "kubeconfig", tmp_path, (), 0).stop()


def test_a_process_is_described_without_the_folder_of_its_program() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        os.kill(child.pid, signal.SIGSTOP)
        os.waitpid(child.pid, os.WUNTRACED)
        text = operators._describe(child.pid)  # noqa: SLF001 - without a report
        child.kill()
    assert text == f"{Path(sys.executable).name} -c input(), state T"
