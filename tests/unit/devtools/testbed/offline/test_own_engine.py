"""The addresses of a private engine, without its programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from devtools.testbed.base.docker import Engine
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.progress import Reporter
from devtools.testbed.base.session import Session
from devtools.testbed.base.settings import Settings
from devtools.testbed.base.state import State, StateFile
from devtools.testbed.offline import engine, host, network


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    for name in ("require_rights", "ensure_packages", "stop", "launch"):
        monkeypatch.setattr(engine, name, lambda *_: tmp_path)
    enter, machine_folder = host.enter, tmp_path / "machine"
    monkeypatch.setattr(host, "enter", lambda *given: enter(*given, machine_folder, tmp_path / "kernel"))
    monkeypatch.setattr(engine, "PRIVATE_RUN_DIRS", ())
    monkeypatch.setattr(engine, "remove_containers_and_volumes", lambda _: None)
    monkeypatch.setattr(network, "add_egress", lambda *_: True)
    monkeypatch.setattr(network, "routes", lambda: [network.Network("172.30.100.0/24")])
    settings = Settings(tmp_path / "state", tmp_path / "cache", "dljob")
    settings.state_dir.mkdir()
    return Session(settings, StateFile(settings.state_dir), State(), Reporter(tmp_path / "d.json"))


def test_an_engine_takes_addresses_that_no_route_and_no_starting_engine_has(session: Session) -> None:
    host.enter("another", [], lambda _: "172.30.104.0/22")
    assert isinstance(engine.start(session), Engine)
    assert session.file.load().block == "172.30.108.0/22"


def test_it_keeps_its_addresses_when_it_starts_again(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.start(session)
    monkeypatch.setattr(network, "routes", list)
    engine.start(session)
    assert session.state.block == "172.30.104.0/22"


def test_addresses_that_another_network_has_taken_are_an_error(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.start(session)
    monkeypatch.setattr(network, "routes", lambda: [network.Network("172.30.104.0/24")])
    with pytest.raises(ClusterError, match=r"172\.30\.104\.0/22"):
        engine.start(session)
    monkeypatch.setattr(network, "link_exists", lambda _: True)
    engine.start(session)


def test_a_cluster_that_failed_to_choose_can_be_removed(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "routes", lambda: [network.Network("172.16.0.0/12")])
    with pytest.raises(ClusterError):
        engine.start(session)
    assert session.file.load().engine == "own", "so that `down` restores the machine's settings"
