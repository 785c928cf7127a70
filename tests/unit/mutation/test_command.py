"""``make mutation`` on one small module."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from devtools.mutation import layout

MODULE = "plugins/module_utils/logic/policies/deadlines.py"
TEST = "tests/unit/logic/test_deadlines.py"


def started(results: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "devtools.mutation", "--results", str(results), "--group", "logic"]
    environment = {**os.environ, "PYTHONPATH": "hack:src:benchmarks", "TMPDIR": str(results.parent)}
    return subprocess.Popen(
        [*command, *arguments],
        cwd=layout.ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_mutant_that_a_test_notices_is_killed(tmp_path: Path) -> None:
    before = (layout.ROOT / MODULE).read_bytes()
    done = started(tmp_path / "results.jsonl", "--module", "policies/deadlines", "--tests", TEST)
    output, _ = done.communicate(timeout=300)
    rows = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["state"] for row in rows} >= {"killed"}, output
    assert {row["module"] for row in rows} == {MODULE}
    assert "| logic |" in output
    assert done.returncode == (1 if "survived" in {row["state"] for row in rows} else 0)
    assert (layout.ROOT / MODULE).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["results.jsonl"]


def test_a_resumed_run_judges_what_is_left_and_modules_that_have_changed(tmp_path: Path) -> None:
    results, arguments = tmp_path / "results.jsonl", ("--module", "policies/deadlines", "--tests", TEST)
    started(results, *arguments).communicate(timeout=300)
    rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    left, of_other_text, *others = rows
    kept = [{**row, "state": "kept"} for row in others]
    rest = [{**of_other_text, "digest": "0"}, *kept]
    results.write_text("".join(json.dumps(row) + "\n" for row in rest), encoding="utf-8")
    started(results, *arguments, "--resume").communicate(timeout=300)
    found = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    assert [row["state"] for row in found[: len(kept)]] == ["kept"] * len(kept)
    again = {(row["operator"], row["occurrence"]): row["state"] for row in found[len(kept) :]}
    assert again == {(row["operator"], row["occurrence"]): row["state"] for row in (left, of_other_text)}


def test_survivors_are_judged_again_and_the_other_rows_stay(tmp_path: Path) -> None:
    results, arguments = tmp_path / "results.jsonl", ("--module", "policies/deadlines", "--tests", TEST)
    started(results, *arguments).communicate(timeout=300)
    first, *others = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    rest = [{**first, "state": "survived"}, *({**row, "state": "killed"} for row in others)]
    results.write_text("".join(json.dumps(row) + "\n" for row in rest), encoding="utf-8")
    started(results, *arguments, "--again").communicate(timeout=300)
    found = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    assert [row["state"] for row in found[:-1]] == ["killed"] * len(others)
    assert (found[-1]["operator"], found[-1]["state"]) == (first["operator"], first["state"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_processes_and_removes_the_copy(tmp_path: Path, number: signal.Signals) -> None:
    running = started(tmp_path / "results.jsonl", "--tests", TEST)
    assert running.stdout is not None
    assert " tests, " in running.stdout.readline(), "the tests have been measured, and mutants are judged"
    running.send_signal(number)
    running.communicate(timeout=60)  # ends with the last process that holds the pipe
    assert running.returncode not in (0, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["results.jsonl"]
