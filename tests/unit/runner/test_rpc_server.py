"""When Ansible starts its RPC server. `test_runner_client` has the same with the Ansible that is installed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dljob_operator.runner import rpc_server


class Manager:
    """As in ansible-core 2.21: one that exists is taken for one that was started."""

    started = 0
    _shared_instance: Manager | None = None

    @classmethod
    def shared_instance(cls) -> Manager:
        if cls._shared_instance is None:
            cls._shared_instance = cls()
            cls.started += 1
        return cls._shared_instance


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Manager]]:
    monkeypatch.setattr(rpc_server, "LocalManager", Manager)
    yield Manager
    Manager.started, Manager._shared_instance = 0, None


def test_it_starts_with_the_first_run_after_the_fork(manager: type[Manager]) -> None:
    rpc_server.put_off()
    manager.shared_instance()
    manager.shared_instance()
    assert manager.started == 0, "the runs of the warm-up have started it in the fork server"
    rpc_server.start_with_next_run()
    first = manager.shared_instance()
    assert manager.started == 1
    assert manager.shared_instance() is first


def test_before_ansible_core_2_21_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc_server, "LocalManager", None)
    rpc_server.put_off()
    rpc_server.start_with_next_run()
