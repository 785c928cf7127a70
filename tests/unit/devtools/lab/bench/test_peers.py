from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from devtools.lab.bench import peers, plan
from devtools.lab.bench.peers import Peer, Running


def test_the_temporary_folder_of_a_peer_is_removed(tmp_path: Path) -> None:
    program = "import os; print('folder', os.environ['TMPDIR'], 'ready', flush=True); import time; time.sleep(600)"
    peer = Peer("p", "p", lambda: [sys.executable, "-c", program])
    with Running(peer, tmp_path / "kubeconfig", tmp_path) as running:
        running.wait_ready(30)
        _, folder, _ = running.log_end().split()
        assert folder.startswith(str(tmp_path))
    assert not Path(folder).exists()


def test_a_standby_is_ready_when_it_says_so(tmp_path: Path) -> None:
    peer = Peer("p", "p", lambda: [sys.executable, "-c", "import sys; print(*sys.argv, flush=True); input()"])
    with Running(peer, tmp_path / "kubeconfig", tmp_path, ["--leader-elect"], "--leader-elect") as running:
        running.wait_ready(30)
        assert running.ready_line == "--leader-elect"


def test_another_checkout_is_a_peer_with_its_own_environment(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has no \.venv; create it with"):
        peers.previous(tmp_path)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *command], cwd=tmp_path, check=True
        )
    previous = peers.previous(tmp_path)
    assert previous.title.startswith("this operator at ")
    assert (previous.folder, previous.command()[0]) == (tmp_path, str(python))
    for workload in plan.WORKLOADS:
        assert plan.takes_part(previous, workload) == plan.takes_part(peers.PEERS[0], workload)
    assert [peer.name for peer in peers.chosen("baseline,previous,dljob-operator", [previous])] == [
        "dljob-operator",
        "previous",
        "baseline",
    ]
