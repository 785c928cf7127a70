"""A command that runs beside itself, or beside one that it would disturb, says so and ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from devtools.checks.suite import cli as suite
from devtools.lab.chaos import cli as chaos
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.process import exclusive
from devtools.testbed.base.settings import settings_from


def test_the_second_one_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "lock"
    with (
        exclusive(file, "a benchmark"),
        pytest.raises(ClusterError, match=r"^a benchmark is in progress\n  fix: wait for its end$"),
        exclusive(file, "a benchmark"),
    ):
        pytest.fail("both run")
    with exclusive(file, "a benchmark"):
        pass


def test_two_runs_of_the_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(suite, "FOLDER", tmp_path / "suite")
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "unit.log").write_text("of the first")
    with exclusive(tmp_path / "suite.lock", "the first"):
        assert suite.main(["--quick"]) == 2
    assert "another run of the tests in this checkout is in progress" in capsys.readouterr().err
    assert (tmp_path / "suite" / "unit.log").read_text() == "of the first"


def test_faults_beside_a_load_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DLJOB_CLUSTER_DIR", str(tmp_path / "cluster"))
    monkeypatch.setattr(chaos, "SCRATCH", tmp_path / "chaos")
    (tmp_path / "chaos").mkdir()
    (tmp_path / "chaos" / "operator.log").write_text("of the first")
    with exclusive(settings_from().load_lock, "a soak"):
        assert chaos.main(["--output", str(tmp_path / "CHAOS.md")]) == 1
    assert "a benchmark or another load run is in progress" in capsys.readouterr().err
    assert (tmp_path / "chaos" / "operator.log").read_text() == "of the first"
    assert not (tmp_path / "CHAOS.md").exists()
