"""What a history costs where it is off, and what its commands and options say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from dljob_operator import cli, run
from dljob_operator.history.migrate import head
from dljob_operator.history.recorder import Recorder
from dljob_operator.history.service import prepare_recorder

LIBRARIES = ("sqlalchemy", "alembic", "psycopg", "mako")


def test_without_a_history_none_of_its_libraries_is_imported() -> None:
    """Idle memory counts."""
    program = (
        "import sys; from dljob_operator import cli, run\n"
        "options = cli.parse(['run'])\n"
        "assert run.prepare_recorder(options, None) is None\n"
        f"print([name for name in {LIBRARIES} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_the_options_reach_the_recorder(tmp_path: Path) -> None:
    options = cli.parse(["run", f"--history-database=sqlite:///{tmp_path}/h.db"])
    registry = CollectorRegistry()
    assert isinstance(prepare_recorder(options, registry), Recorder)
    assert registry.get_sample_value("dljob_history_queue_jobs") == 0


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    options = cli.parse(["run", "--history-database=postgresql://h/d"])
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ValueError, match=r"pip install 'dljob-operator\[history\]'"):
        prepare_recorder(options, CollectorRegistry())


def test_the_engine_refuses_a_url_before_it_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    options = cli.parse(["run", "--history-database=postgresql://u:geheim@h:port/d"])
    with pytest.raises(ValueError, match="--history-database: the URL of the history's database cannot be read") as no:
        run.EmbeddedEngine(options, run.Stopping())
    assert "geheim" not in str(no.value)


def test_migrate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert cli.main(["history", "migrate", f"--history-database=sqlite:///{tmp_path}/h.db"]) == 0
        assert capsys.readouterr().out == f"sqlite:///{tmp_path}/h.db has the revision {head()}\n"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "name the database with --history-database, or with DLJOB_HISTORY_DATABASE"),
        (["--history-database=sqlite:////none/h.db"], "sqlite:////none/h.db: unable to open database file"),
        (["--history-database=postgresql://u:geheim@127.0.0.1:1/d"], "postgresql+psycopg://u:***@127.0.0.1:1/d: "),
    ],
)
def test_a_migration_that_fails_says_why(given: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["history", "migrate", *given]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"dljob-operator: {said}") and err.count("\n") == 1
    assert "geheim" not in err
