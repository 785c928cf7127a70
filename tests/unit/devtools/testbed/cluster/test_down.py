"""What ``down`` ends and forgets beside the cluster itself, and which cluster counts as there."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from devtools.testbed.base.process import identify
from devtools.testbed.base.settings import Settings, settings_from
from devtools.testbed.base.state import State, StateFile
from devtools.testbed.cluster import cli, lifecycle


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("DLJOB_CLUSTER_DIR", str(tmp_path / "cluster"))
    monkeypatch.setenv("DLJOB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DLJOB_CLUSTER_NAME", raising=False)
    monkeypatch.delenv(cli.MOLECULE, raising=False)
    found = settings_from()
    found.state_dir.mkdir()
    return found


@pytest.fixture
def operator(settings: Settings) -> Iterator[subprocess.Popen[bytes]]:
    """Stands for the operator of a scenario that was killed."""
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        folder = settings.state_dir / "molecule" / "default"
        folder.mkdir(parents=True)
        found = identify(process.pid)
        assert found is not None
        (folder / "process.json").write_text(json.dumps(dataclasses.asdict(found)))
        yield process
        process.kill()


def test_it_ends_operators_and_forgets_what_molecule_created(
    settings: Settings, operator: subprocess.Popen[bytes]
) -> None:
    """Otherwise molecule would delete the next cluster, which it has not created, and use the old operator on it."""
    created = settings.state_dir / "molecule-created"
    created.touch()
    settings.molecule_state_dir.mkdir()
    assert cli.main(["down"]) == 0
    assert operator.wait(10) == -15
    assert not list(settings.operator_records())
    assert not created.exists()
    assert not settings.molecule_state_dir.exists()


def test_molecule_keeps_its_state_while_it_runs(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cli.MOLECULE, "molecule.yml")
    settings.molecule_state_dir.mkdir()
    assert cli.main(["down"]) == 0
    assert settings.molecule_state_dir.exists()


def test_the_second_cluster_of_a_killed_test_run_goes_too(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    StateFile(settings.state_dir).save(State(name="dljob"))
    settings.other_cluster.mkdir()
    StateFile(settings.other_cluster).save(State(name="dljob-123456"))
    monkeypatch.setenv("DLJOB_CLUSTER_NAME", "dljob")
    assert cli.main(["down"]) == 0
    assert not (settings.other_cluster / "state.json").exists()
    assert not (settings.state_dir / "state.json").exists()
    assert capsys.readouterr().out.count("is down") == 2


@pytest.mark.parametrize(
    ("state", "exists"),
    [
        (State(), False),
        (State(name="dljob", engine="own", creation="begun"), False),
        (State(name="dljob", engine="own", creation="done"), True),
    ],
)
def test_a_cluster_that_was_created_is_there_whether_it_answers_or_not(
    settings: Settings, state: State, exists: bool
) -> None:
    if state.name:
        StateFile(settings.state_dir).save(state)
    assert lifecycle.exists(settings) == exists
