"""Which processes may request runs at the socket of the bridge."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
from pathlib import Path
from typing import cast

import pytest
from support.polling import until

from dljob_operator.ansible_operator_bridge import server
from dljob_operator.ansible_operator_bridge.command import Command, JobNestedTooDeeply, UnsupportedRun
from dljob_operator.ansible_operator_bridge.controller import BridgeController
from dljob_operator.ansible_operator_bridge.parsed_run import RunExit


class Peer:
    """A connection whose other end belongs to ``uid``; it stands for what only root could make."""

    def __init__(self, uid: int) -> None:
        self.uid = uid

    def getsockopt(self, level: int, name: int, size: int) -> bytes:
        assert (level, name) == (socket.SOL_SOCKET, socket.SO_PEERCRED)
        return struct.pack("3i", 4711, self.uid, 0)[:size]


def check(peer: Peer | socket.socket) -> None:
    server._check_peer(cast(socket.socket, peer))  # noqa: SLF001 - only root can connect as another user


def test_only_its_own_user_can_reach_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "socket"
    serving = server.ShimServer(path, cast(BridgeController, None))
    try:
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        serving.server_close()


def test_a_process_of_another_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1001)
    check(Peer(1001))
    check(Peer(0))
    with pytest.raises(UnsupportedRun, match="user 1002"):
        check(Peer(1002))


def test_a_request_of_another_user_reaches_no_bridge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only root could connect as another user, so the test changes what the kernel says of the other end."""

    class Bridge:
        def __init__(self) -> None:
            self.asked: list[tuple[list[str], Path]] = []

        def prepare(self, argv: list[str], cwd: Path) -> None:
            self.asked.append((argv, cwd))
            raise UnsupportedRun("not in this test")

    def credentials(connection: socket.socket, level: int, name: int, size: int) -> bytes:
        return Peer(uid).getsockopt(level, name, size)

    def asked() -> bytes:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(str(path))
            body = b"\0".join([b"/tmp", b"run"])
            with contextlib.suppress(BrokenPipeError):  # it may have refused before it reads
                connection.sendall(f"{len(body)}\n".encode() + body)
            return connection.makefile("rb").readline()

    monkeypatch.setattr(socket.socket, "getsockopt", credentials)
    bridge, path = Bridge(), tmp_path / "socket"
    serving = server.ShimServer(path, cast(BridgeController, bridge))
    serving.start()
    try:
        uid = os.getuid() + 1
        assert asked() == f"rejected user {uid} may not use this socket\n".encode()
        assert bridge.asked == []
        uid = os.getuid()
        assert asked() == b"rejected not in this test\n"
        assert bridge.asked == [(["run"], Path("/tmp"))]
    finally:
        serving.stop()


class Failing:
    """A bridge that cannot parse a run."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def prepare(self, argv: list[str], cwd: Path) -> None:
        raise self._error

    def ignore(self, run: JobNestedTooDeeply) -> RunExit:
        return RunExit(0, f"ignored {run.asked.ident}")


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (JobNestedTooDeeply(Command(Path("/tmp/x"), "12", Path("/role")), "", ""), b"accepted\n0\nignored 12"),
        (RuntimeError("a bug"), b"accepted\n2\nfailed: the operator failed with an internal error, see its log\n"),
    ],
)
def test_what_no_cold_run_would_mend_starts_none(tmp_path: Path, error: Exception, answer: bytes) -> None:
    serving = server.ShimServer(tmp_path / "socket", cast(BridgeController, Failing(error)))
    serving.start()
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(str(tmp_path / "socket"))
            body = b"\0".join([b"/tmp", b"run"])
            connection.sendall(f"{len(body)}\n".encode() + body)
            assert connection.makefile("rb").read() == answer
    finally:
        serving.stop()


def test_the_kernel_names_the_other_end() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours, theirs:
        check(ours)


def test_a_server_whose_thread_has_ended_is_a_problem_until_it_is_stopped(tmp_path: Path) -> None:
    serving = server.ShimServer(tmp_path / "socket", cast(BridgeController, None))
    assert serving.problem() == ""
    serving.start()
    try:
        assert serving.problem() == ""
        serving.shutdown()
        until(serving.problem)
        assert serving.problem() == "the thread shim server has ended"
    finally:
        serving.stop()
    assert serving.problem() == ""
