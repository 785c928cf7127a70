from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from devtools.lab.bench import processes
from devtools.lab.bench.peers import catalog, ours
from devtools.lab.bench.peers.base import Peer, PeerFailed, Running, total

_LEAVES_A_CHILD = """
import subprocess, sys, os
child = subprocess.Popen([sys.executable, "-c", "import time; print(1, flush=True); time.sleep(600)"], start_new_session=True)
print("child", child.pid, os.environ["TMPDIR"], flush=True)
print("ready", flush=True)
child.wait()
"""


def peer(program: str) -> Peer:
    return Peer("p", "p", lambda kubeconfig, scratch: [sys.executable, "-c", program], "ready")


def test_all_processes_of_a_peer_are_stopped(tmp_path: Path) -> None:
    with Running(peer(_LEAVES_A_CHILD), tmp_path / "kubeconfig", tmp_path) as running:
        running.wait_ready(30)
        running.check()
        _, child, folder = next(li for li in running.log_end().splitlines() if li.startswith("child")).split()
        assert processes.tree(int(child))
    deadline = time.monotonic() + 10
    while Path(f"/proc/{child}").exists() and "Z" not in Path(f"/proc/{child}/stat").read_text().split(")")[1][:3]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not Path(folder).exists()
    assert os.getpid() in processes.tree(os.getpid())


def test_a_peer_that_does_not_start_is_reported_with_its_log(tmp_path: Path) -> None:
    with (
        Running(peer("raise SystemExit('no such luck')"), tmp_path / "kubeconfig", tmp_path) as running,
        pytest.raises(PeerFailed, match="no such luck"),
    ):
        running.wait_ready(30)


def test_a_peer_goes_on_where_its_log_cannot_be_written(tmp_path: Path) -> None:
    """The disk is full, for instance: without a reader the peer would stop once its pipe is full."""
    (tmp_path / "p.log").symlink_to("/dev/full")
    much = "print('x' * 1_000_000, flush=True); print('ready', flush=True); import time; time.sleep(600)"
    with Running(peer(much), tmp_path / "kubeconfig", tmp_path) as running:
        running._ready.wait(30)  # noqa: SLF001 - before the checks of wait_ready
        with pytest.raises(PeerFailed, match=r"the log of p cannot be written: .*No space left"):
            running.check()


def test_reconciles_are_the_sum_of_what_the_metric_says() -> None:
    text = """# HELP dljob_reconciles_total Jobs that were reconciled
dljob_reconciles_total{kind="kubeflow.org/v1 MXJob",result="ok"} 12.0
dljob_reconciles_total{kind="kubeflow.org/v1 MXJob",result="failed"} 1.0
dljob_reconciles_created{kind="kubeflow.org/v1 MXJob",result="ok"} 1.7e+09
"""
    assert total(text, r"dljob_reconciles_total\{") == 13
    assert total("", "x") == 0


def test_another_checkout_is_a_peer_with_its_own_environment(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has no \.venv; create it with"):
        ours.previous(tmp_path)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *command], cwd=tmp_path, check=True
        )
    previous = ours.previous(tmp_path)
    assert previous.title.startswith("this operator at ")
    assert (previous.folder, previous.command(tmp_path, tmp_path)[0]) == (tmp_path, str(python))
    assert [peer.name for peer in catalog.chosen("baseline,previous,dljob-operator", [previous])] == [
        "dljob-operator",
        "previous",
        "baseline",
    ]
