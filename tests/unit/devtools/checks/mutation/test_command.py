"""``make mutation`` on one small module."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from devtools.paths import ROOT

MODULE = "plugins/module_utils/logic/plan/policies/active_deadline.py"
TEST = "tests/unit/logic/plan/policies/test_active_deadline.py"


def started(results: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "devtools.checks.mutation", "--results", str(results), "--group", "logic"]
    environment = {**os.environ, "PYTHONPATH": "hack:src", "TMPDIR": str(results.parent)}
    return subprocess.Popen(
        [*command, *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def judged(results: Path, *arguments: str) -> tuple[int, str]:
    """The status and the output of a run on ``MODULE`` that has exited."""
    done = started(results, "--module", "policies/active_deadline", "--tests", TEST, *arguments)
    output, _ = done.communicate(timeout=300)
    return done.returncode, output


def rows(results: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]


def changed(results: Path, found: list[dict[str, Any]]) -> Path:
    results.write_text("".join(json.dumps(row) + "\n" for row in found), encoding="utf-8")
    return results


def mutant(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["operator"], row["occurrence"], row["state"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The rows of a run of all mutants of ``MODULE``."""
    folder = tmp_path_factory.mktemp("whole")
    before = (ROOT / MODULE).read_bytes()
    status, output = judged(folder / "results.jsonl")
    assert "| logic |" in output
    assert status == (1 if "survived" in {row["state"] for row in rows(folder / "results.jsonl")} else 0), output
    assert (ROOT / MODULE).read_bytes() == before
    assert [path.name for path in folder.iterdir()] == ["results.jsonl"]
    return rows(folder / "results.jsonl")


def test_a_mutant_that_a_test_notices_is_killed(whole: list[dict[str, Any]]) -> None:
    assert {row["state"] for row in whole} >= {"killed"}
    assert {row["module"] for row in whole} == {MODULE}


def test_a_resumed_run_judges_what_is_left_and_modules_that_have_changed(
    tmp_path: Path, whole: list[dict[str, Any]]
) -> None:
    left, of_other_text, without_text, *others = whole
    kept = [{**row, "state": "kept"} for row in others]
    early = {key: value for key, value in without_text.items() if key != "digest"}
    results = changed(tmp_path / "results.jsonl", [{**of_other_text, "digest": "0"}, early, *kept])
    judged(results, "--resume")
    found = rows(results)
    assert [row["state"] for row in found[: len(kept)]] == ["kept"] * len(kept)
    assert {mutant(row) for row in found[len(kept) :]} == {mutant(row) for row in (left, of_other_text, without_text)}


def test_survivors_are_judged_again_and_the_other_rows_stay(tmp_path: Path, whole: list[dict[str, Any]]) -> None:
    first, *others = whole
    killed = [{**row, "state": "killed"} for row in others]
    results = changed(tmp_path / "results.jsonl", [{**first, "state": "survived"}, *killed])
    judged(results, "--again")
    found = rows(results)
    assert [row["state"] for row in found[:-1]] == ["killed"] * len(others)
    assert mutant(found[-1]) == mutant(first)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_processes_and_removes_the_copy(tmp_path: Path, number: signal.Signals) -> None:
    running = started(tmp_path / "results.jsonl", "--tests", TEST)
    assert running.stdout is not None
    assert " tests, " in running.stdout.readline(), "the tests have been measured, and mutants are judged"
    running.send_signal(number)
    running.communicate(timeout=60)  # ends with the last process that holds the pipe
    assert running.returncode not in (0, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["results.jsonl"]
