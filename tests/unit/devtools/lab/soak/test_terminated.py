"""A terminated fuzz or soak run ends its operator, and writes what it has, whichever of its threads gets the signal."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from support import terminated

COMMON = """
from contextlib import contextmanager
from types import SimpleNamespace

class ProbedOperator:
    pid = os.getpid()
    log = Path(os.environ["DLJOB_CLUSTER_DIR"]) / "log"
    def __init__(self, *_): self.log.touch()
    def __enter__(self): return self
    def __exit__(self, *_): print("operator ended")
    def gauge(self, _): return 0.0
    def problem(self): return ""

@contextmanager
def namespace(*_):
    try:
        yield "x"
    finally:
        print("namespace removed")

@contextmanager
def prepared(*_):
    try:
        yield SimpleNamespace(client=None, kubeconfig=None, folder=None, nodes=1, kinds=KINDS, namespace=namespace)
    finally:
        print("account removed")

from devtools.testbed.jobs import read_kinds
KINDS = read_kinds()
OUTPUT = ["--output", os.environ["DLJOB_CLUSTER_DIR"]]
"""

FUZZ = (
    COMMON
    + """
from devtools.lab.fuzz import cli

class Beside:
    times, lost = [], []
    def __init__(self, *_): pass
    def __enter__(self): return self
    def __exit__(self, *_): pass
    start = stop = lambda self: None
    undisturbed = block

cli.prepared, cli.ProbedOperator, cli.beside.Beside = prepared, ProbedOperator, Beside
cli.machine.facts = lambda *_: {"machine": "two cores"}
folder = Path(os.environ["DLJOB_CLUSTER_DIR"])
sys.exit(cli.main([*OUTPUT, "--objects", "5", "--table", str(folder / "FUZZ.md")]))
"""
)
SOAK = (
    COMMON
    + """
from devtools.lab.soak import cli

class Soak(cli.Soak):
    def __enter__(self): return self
    def __exit__(self, *_): pass
    run = block

cli.prepared, cli.ProbedOperator, cli.Soak = prepared, ProbedOperator, Soak
cli.machine.facts = lambda *_: {}
cli.clear = lambda *_: None
cli.samples.rows = lambda *_: []
cli.samples.series = lambda *_: {}
cli.report.draw = lambda *_: None
folder = Path(os.environ["DLJOB_CLUSTER_DIR"])
sys.exit(cli.main([*OUTPUT, "--table", str(folder / "SOAK.md")]))
"""
)
SIGNALS = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])


@SIGNALS
def test_fuzz_ends_the_operator_and_reports(number: signal.Signals, tmp_path: Path) -> None:
    done = terminated.run(FUZZ, number, tmp_path)
    assert done.returncode == 1, done.stderr
    for text in ("operator ended", "namespace removed", "account removed", "violations: 0"):
        assert text in done.stdout, done.stderr
    assert (tmp_path / "report.json").is_file()
    written = (tmp_path / "FUZZ.md").read_text()
    assert "- machine: two cores" in written and "- **incomplete**" in written


@SIGNALS
def test_soak_ends_the_operator_and_writes_what_it_has(number: signal.Signals, tmp_path: Path) -> None:
    done = terminated.run(SOAK, number, tmp_path)
    assert done.returncode == 1, done.stderr
    for text in ("operator ended", "namespace removed", "account removed"):
        assert text in done.stdout, done.stderr
    assert "stopped early: interrupted" in (tmp_path / "SOAK.md").read_text()
