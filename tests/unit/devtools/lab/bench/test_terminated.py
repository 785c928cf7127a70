"""A terminated benchmark writes what it has measured and ends what it has started, whichever thread gets the signal."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from support import terminated

BENCH = """
from types import SimpleNamespace
from devtools.lab.bench import cli

class Session:
    def __init__(self, *_): pass
    run = block

class Bench(cli.Bench):
    @classmethod
    def on_cluster(cls, *_):
        context = SimpleNamespace(client=None, deadline=float("inf"), say=print)
        return cls(context, Path("unused"), True, {})
    def write(self):
        print("written:", *self.left_out)

cli.SCRATCH = Path(os.environ["DLJOB_CLUSTER_DIR"])
cli.account.remove = lambda client: print("account removed")
cli.catalog.chosen = lambda names, more: cli.catalog.PEERS[:1]
cli.Session, cli.Bench = Session, Bench
sys.exit(cli.main([]))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_measurements_are_written(number: signal.Signals, tmp_path: Path) -> None:
    done = terminated.run(BENCH, number, tmp_path)
    assert done.returncode == 1, done.stderr
    *_, removed, written, cluster = done.stdout.splitlines()
    assert (removed, written) == ("account removed", "written: the run was interrupted")
    assert "make cluster-down" in cluster


GROWTH = """
from types import SimpleNamespace
from devtools.lab.bench import growth

growth.lifecycle = SimpleNamespace(exists=lambda _: False, up=block, down=lambda _: print("cluster deleted"))
growth.cli.SCRATCH = Path(os.environ["DLJOB_CLUSTER_DIR"])
sys.exit(growth.main([]))
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, -signal.SIGINT)])
def test_the_cluster_of_the_growth_is_deleted(number: signal.Signals, status: int, tmp_path: Path) -> None:
    done = terminated.run(GROWTH, number, tmp_path)
    assert (done.returncode, done.stdout) == (status, "cluster deleted\n"), done.stderr
