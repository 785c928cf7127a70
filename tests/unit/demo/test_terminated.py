"""A terminated demo deletes its cluster, whichever of its threads gets the signal."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from support import terminated

DEMO = """
from devtools.demo import cli
cli.lifecycle.status = lambda settings: [cli.lifecycle.Part("cluster", False, "down")]
cli.lifecycle.up = block
cli.lifecycle.down = lambda settings: print("deleted")
sys.exit(cli.main([]))
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_the_cluster_is_deleted(number: signal.Signals, status: int, tmp_path: Path) -> None:
    done = terminated.run(DEMO, number, tmp_path)
    assert done.returncode == status, done.stderr
    assert "cleaning up\ndeleted\n" in done.stdout
