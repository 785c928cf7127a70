"""The start of a private engine, without its programs."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from devtools.cluster import engine, lifecycle, machine, network
from devtools.cluster.engine import Engine
from devtools.cluster.progress import Reporter
from devtools.cluster.settings import Settings
from devtools.cluster.state import State, StateFile


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> lifecycle.Session:
    for module, name in (
        (engine, "require_rights"),
        (engine, "ensure_packages"),
        (engine, "stop"),
        (machine, "enter"),
    ):
        monkeypatch.setattr(module, name, lambda *_: tmp_path)
    monkeypatch.setattr(network, "add_egress", lambda *_: True)
    settings = Settings(tmp_path / "state", tmp_path / "cache", "dljob")
    settings.state_dir.mkdir()
    return lifecycle.Session(settings, StateFile(settings.state_dir), State(), Reporter(tmp_path / "d.json"))


def another_may_choose() -> bool:
    """Whether another process could choose a block now."""
    folder = os.open(network.LINKS, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(folder)
    return True


def test_no_other_cluster_chooses_a_block_before_this_one_has_its_link(
    session: lifecycle.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two clusters that started within four seconds once had the same addresses, and the DNS of one never became ready."""
    seen: dict[str, bool] = {}

    def watched(name: str, result: Any) -> Callable[..., Any]:
        return lambda *_: (seen.update({name: another_may_choose()}), result)[1]

    block = network.Network("172.30.100.0/22")
    monkeypatch.setattr(network, "free_block", watched("chosen", block))
    monkeypatch.setattr(engine, "start", watched("started", None))
    monkeypatch.setattr(engine, "remove_containers_and_volumes", lambda _: None)
    started = lifecycle.start_own_engine(session)
    assert isinstance(started, Engine)
    assert seen == {"chosen": False, "started": False}
    assert another_may_choose()
    assert session.state.block == str(block)
