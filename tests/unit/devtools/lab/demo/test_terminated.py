"""A terminated demo deletes its cluster, whichever of its threads gets the signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from devtools.testbed.base import termination
from support import terminated

DEMO = """
from devtools.lab.demo import cli
cli.lifecycle.exists = lambda settings: False
cli.lifecycle.up = block
cli.lifecycle.down = lambda settings: print("deleted")
sys.exit(cli.main([]))
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_the_cluster_is_deleted(number: signal.Signals, status: int, tmp_path: Path) -> None:
    # these tests may run under nohup, whose children ignore SIGHUP
    done = terminated.run(f"signal.signal(signal.SIGHUP, signal.SIG_DFL)\n{DEMO}", number, tmp_path)
    assert done.returncode == status, done.stderr
    assert "cleaning up\ndeleted\n" in done.stdout


def test_under_nohup_it_goes_on_when_the_terminal_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "getsignal", {signal.SIGHUP: signal.SIG_IGN}.get)
    assert termination.ending_signals() == (signal.SIGTERM, signal.SIGINT)


TERMINAL = """
import pty
from devtools.testbed.base import termination
number = int(sys.argv[1])
ours, theirs = pty.openpty()
os.dup2(theirs, 1)
os.close(theirs)
os.close(ours)
termination.leave_terminal(number)
os.write(1, b"cleaning up")
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGHUP, 0), (signal.SIGTERM, 1)])
def test_the_clean_up_may_write_when_the_terminal_has_closed(number: signal.Signals, status: int) -> None:
    script = f"import os, signal, sys\n{TERMINAL}"
    environ = {**os.environ, "PYTHONPATH": f"{terminated.ROOT}/hack:{terminated.ROOT}/src"}
    command = [sys.executable, "-c", script, str(int(number))]
    done = subprocess.run(command, env=environ, capture_output=True, timeout=30, check=False)
    assert done.returncode == status, done.stderr
