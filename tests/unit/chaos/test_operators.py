"""How the processes of an operator are found."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from devtools.chaos import operators
from devtools.chaos.operators import MARK, role_of

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
