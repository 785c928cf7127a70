"""When Ansible starts its RPC server. `test_runner_client` has the same with the Ansible that is installed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible.release import __version__

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
    Manager.started, Manager._shared_instance = 0, None  # noqa: SLF001 - Ansible's name


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


@pytest.mark.parametrize(("length", "starts"), [(75, True), (76, __version__ < "2.21")])
def test_a_playbook_with_a_long_temporary_folder(length: int, starts: bool) -> None:
    """docs/troubleshooting.md gives the length: the server's socket is below that folder."""
    program = Path(sys.executable).with_name("ansible")
    with tempfile.TemporaryDirectory(prefix="d", dir="/tmp") as outer:
        folder = Path(outer, "x" * (length - len(outer) - 1))
        folder.mkdir()
        done = subprocess.run(
            [program, "localhost", "--inventory", "localhost,", "--connection", "local", "--module-name", "debug"],
            env={**os.environ, "TMPDIR": str(folder)}, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode == 0) == starts, done.stdout + done.stderr
    assert starts or "Local RPC server did not start" in done.stderr
