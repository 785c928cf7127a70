"""What the image's entrypoint starts for each engine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ENTRYPOINT = Path(__file__).resolve().parents[5] / "build" / "entrypoint" / "dljob-entrypoint"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A PATH with programs that print how they were started."""
    for name in ("dljob-operator", "ansible-operator"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho {name} "$@"\n')
        program.chmod(0o755)
    return tmp_path


def started(programs: Path, *arguments: str, **environment: str) -> list[str]:
    env = {"PATH": f"{programs}:{os.defpath}", **environment}
    done = subprocess.run([str(ENTRYPOINT), *arguments], env=env, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_ansible_operator_may_start_more_runs_than_there_are_workers(programs: Path) -> None:
    words = started(programs, "--leader-elect", DLJOB_CONCURRENCY="3")
    serve, operator = words[: words.index("--")], words[words.index("--") + 1 :]
    assert serve == ["dljob-operator", "serve", "--max-concurrent-reconciles", "3"]
    assert operator[:2] == ["ansible-operator", "run"]
    assert {"--max-concurrent-reconciles=12", "--ansible-log-events=Nothing", "--ansible-verbosity=0"} <= {*operator}
    assert operator[-1] == "--leader-elect"


def test_without_ansible_operator_the_embedded_engine_runs(programs: Path) -> None:
    (programs / "ansible-operator").unlink()
    words = started(programs, "--leader-elect")
    assert words[:4] == ["dljob-operator", "run", "--max-concurrent-reconciles", "4"]
    assert words[-1] == "--leader-elect"
