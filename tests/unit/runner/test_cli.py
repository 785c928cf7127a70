"""The command line's own checks."""

from __future__ import annotations

import pytest

from dljob_operator import cli


def test_the_cloud_reaches_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DLJOB_CLOUD", "azure")
    assert cli._parser().parse_args(["run"]).cloud == "azure"
    options = cli._parser().parse_args(["run", "--cloud", "gke"])
    assert cli._run_environ(None, options.cloud)["DLJOB_CLOUD"] == "gke"
    monkeypatch.delenv("DLJOB_CLOUD")
    assert cli._parser().parse_args(["run"]).cloud == ""


def test_a_cloud_that_there_is_not(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli._parser().parse_args(["run", "--cloud", "aws"])
    assert "aws is neither gke nor azure" in capsys.readouterr().err
    monkeypatch.setenv("DLJOB_CLOUD", "aws")
    with pytest.raises(SystemExit):
        cli._parser().parse_args(["run"])
