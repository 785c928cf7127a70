"""A terminated benchmark writes what it has measured and ends what it has started, whichever thread gets the signal."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from support import terminated

BENCH = """
from contextlib import contextmanager
from types import SimpleNamespace
from devtools.lab.bench import cli

class Session:
    def __init__(self, *_): pass
    run = block

class Bench(cli.Bench):
    def write(self):
        print("written:", *self.left_out)

@contextmanager
def prepared(*_):
    yield SimpleNamespace()
    print("account removed")

cli.facts = lambda ground: {}
cli.peers.chosen = lambda names, more: cli.peers.PEERS[:1]
cli.prepared, cli.Session, cli.Bench = prepared, Session, Bench
sys.exit(cli.main([]))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_measurements_are_written(number: signal.Signals, tmp_path: Path) -> None:
    done = terminated.run(BENCH, number, tmp_path)
    assert done.returncode == 1, done.stderr
    *_, written, removed, cluster = done.stdout.splitlines()
    assert (removed, written) == ("account removed", "written: the run was interrupted")
    assert "make cluster-down" in cluster


GROWTH = """
from types import SimpleNamespace
from devtools.lab.bench import growth

growth.prepared = block
growth.lifecycle = SimpleNamespace(exists=lambda _: False, down=lambda _: print("cluster deleted"))
growth.cli.SCRATCH = Path(os.environ["DLJOB_CLUSTER_DIR"])
sys.exit(growth.main([]))
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, -signal.SIGINT)])
def test_the_cluster_of_the_growth_is_deleted(number: signal.Signals, status: int, tmp_path: Path) -> None:
    done = terminated.run(GROWTH, number, tmp_path)
    assert (done.returncode, done.stdout) == (status, "cluster deleted\n"), done.stderr
