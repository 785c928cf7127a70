"""How an operator is started and ended, and what a failed start says."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from devtools.testbed import usage
from devtools.testbed.operator import OperatorError, OperatorProcess, total

_LEAVES_A_CHILD = """
import subprocess, sys, os
child = subprocess.Popen([sys.executable, "-c", "import time; print(1, flush=True); time.sleep(600)"], start_new_session=True)
print("child", child.pid, flush=True)
print("ready", flush=True)
child.wait()
"""


def process(program: str, folder: Path, *, log: str = "p.log") -> OperatorProcess:
    return OperatorProcess(folder / "kubeconfig", folder / log, command=[sys.executable, "-c", program], ready="ready")


def test_all_processes_of_a_peer_are_stopped(tmp_path: Path) -> None:
    with process(_LEAVES_A_CHILD, tmp_path) as running:
        running.wait_ready(30)
        running.check()
        _, child = next(li for li in running.log_end().splitlines() if li.startswith("child")).split()
        assert usage.tree(int(child))
    deadline = time.monotonic() + 10
    while Path(f"/proc/{child}").exists() and "Z" not in Path(f"/proc/{child}/stat").read_text().split(")")[1][:3]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert os.getpid() in usage.tree(os.getpid())


def test_nothing_is_stopped_by_the_id_of_a_killed_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may have that id by then."""
    with OperatorProcess(
        tmp_path / "k", tmp_path / "log", command=[sys.executable, "-c", "import time; time.sleep(60)"]
    ) as operator:
        operator.kill()
        monkeypatch.setattr(usage, "tree", lambda root: pytest.fail("it looked for processes"))


def test_a_peer_that_does_not_start_is_reported_with_its_log(tmp_path: Path) -> None:
    with (
        process("raise SystemExit('no such luck')", tmp_path) as running,
        pytest.raises(OperatorError, match=r"the operator exited before it was ready:\n(.*\n)*no such luck"),
    ):
        running.wait_ready(30)


def test_a_peer_goes_on_where_its_log_cannot_be_written(tmp_path: Path) -> None:
    """The disk is full, for instance: without a reader the peer would stop once its pipe is full."""
    (tmp_path / "p.log").symlink_to("/dev/full")
    much = "print('x' * 1_000_000, flush=True); print('ready', flush=True); import time; time.sleep(600)"
    with process(much, tmp_path) as running:
        running._ready.wait(30)  # noqa: SLF001 - before the checks of wait_ready
        with pytest.raises(OperatorError, match=r"the log of the operator cannot be written: .*No space left"):
            running.check()


def test_it_is_ready_once_its_line_has_come(tmp_path: Path) -> None:
    slow = "print('x is ready: 3 watches', flush=True); import time; time.sleep(600)"
    with process(slow, tmp_path) as running:
        running.wait_ready(30)
        assert running.ready_line == "ready: 3 watches"
        running.kill()
        with pytest.raises(OperatorError, match="the operator exited with -9"):
            running.check()
    with process("import time; time.sleep(600)", tmp_path) as running, pytest.raises(OperatorError, match="after 0 s"):
        running.wait_ready(0.01)


@pytest.mark.parametrize(("keeps_log", "times"), [(True, 2), (False, 1)])
def test_a_log_is_continued_on_request(keeps_log: bool, times: int, tmp_path: Path) -> None:
    for _ in range(2):
        command = [sys.executable, "-c", "print('once')"]
        with OperatorProcess(tmp_path, tmp_path / "log", command=command, keeps_log=keeps_log) as running:
            assert running.wait(30) == 0
    assert (tmp_path / "log").read_text() == "once\n" * times


def test_reconciles_are_the_sum_of_what_the_metric_says() -> None:
    text = """# HELP dljob_reconciles_total Jobs that were reconciled
dljob_reconciles_total{kind="kubeflow.org/v1 MXJob",result="ok"} 12.0
dljob_reconciles_total{kind="kubeflow.org/v1 MXJob",result="failed"} 1.0
dljob_reconciles_created{kind="kubeflow.org/v1 MXJob",result="ok"} 1.7e+09
"""
    assert total(text, r"dljob_reconciles_total\{") == 13
    assert total("", "x") == 0
