"""The deadline that a leader sets for the processes that write for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared import write_deadline
from ansible_collections.dljob.operator.plugins.module_utils.shared.write_deadline import VARIABLE, WriteDeadline


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deadline"


def test_nothing_may_be_written_before_the_first_renewal(path: Path) -> None:
    assert WriteDeadline(path, create=True).seconds_left <= 0
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_deadline_is_that_of_all_who_open_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_deadline, "boottime", lambda: 100.0)
    leader, worker = WriteDeadline(path, create=True), WriteDeadline(path)
    for moment, left in [(100.5, 0.5), (100.0, 0.0), (99.0, -1.0), (float("-inf"), float("-inf"))]:
        leader.extend(moment)
        assert worker.seconds_left == left


def test_another_process_sees_it(path: Path) -> None:
    leader = WriteDeadline(path, create=True)
    leader.extend(float("inf"))
    script = (
        f"import os, {write_deadline.__name__} as it; print(it.WriteDeadline.of_environment(os.environ).seconds_left)"
    )
    output = subprocess.check_output([sys.executable, "-c", script], env={**os.environ, VARIABLE: str(path)}, text=True)
    assert output.strip() == "inf"


def test_an_existing_file_is_not_taken_over(path: Path) -> None:
    path.write_text("a file of somebody else")
    with pytest.raises(FileExistsError):
        WriteDeadline(path, create=True)


def test_without_an_operator_there_is_no_deadline() -> None:
    assert WriteDeadline.of_environment({}) is None
    assert WriteDeadline.of_environment({VARIABLE: ""}) is None
