"""The order in which the fork server starts what waits for a slot."""

from __future__ import annotations

import math
import os
import selectors
import socket
from pathlib import Path
from typing import Any, cast

import pytest

from dljob_operator.runner import fork_server
from dljob_operator.runner.fork_server import ForkServer, WorkerLimits
from dljob_operator.runner.messages import Frame, FrameReader, TaskFailure


class Playbooks:
    """Loads nothing, and notes what it should."""

    def __init__(self) -> None:
        self.unloaded: dict[str, None] = {}
        self.loaded: list[str] = []

    def load(self, name: str) -> list[TaskFailure]:
        del self.unloaded[name]
        self.loaded.append(name)
        return [TaskFailure(name, "is broken")] if name == "broken" else []


class Slots(ForkServer):
    """A fork server that starts no processes; a test says how many slots are free."""

    def __init__(self, control: socket.socket) -> None:
        self.playbooks = Playbooks()
        super().__init__(control, cast(Any, self.playbooks), Path(), WorkerLimits(0, math.inf), cast(Any, None))
        for source in (control, self._wakeup_read):
            self._selector.register(source, selectors.EVENT_READ)
        self.started: list[int] = []

    def take_in(self) -> None:
        """Receive what was asked, while no slot is free."""
        self._poll_once()

    def free_a_slot(self) -> None:
        self._concurrency += 1
        os.write(self._wakeup_write, b"!")
        self._poll_once()

    def _running(self) -> int:
        return len(self.started)

    def _dispatch(self, number: int, timeout: float, target: str, body: bytes) -> None:
        self.started.append(number)

    def _fork(self, number: int | None, timeout: float, body: bytes, target: str = "") -> Any:
        assert number is not None
        self.started.append(number)


@pytest.mark.parametrize(
    ("asked", "started"),
    [
        ("ffffb", [5, 1, 2, 3, 4]),
        ("ffbb", [3, 1, 4, 2]),
        ("bbbf", [1, 4, 2, 3]),
        ("fff", [1, 2, 3]),
        ("bb", [1, 2]),
    ],
)
def test_many_slow_runs_do_not_hold_up_the_batches_of_others_nor_these_them(asked: str, started: list[int]) -> None:
    """``f`` is a run in a process of its own, ``b`` a batch for a long-lived worker."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        server = Slots(theirs)
        for number, what in enumerate(asked, 1):
            more = {"long_lived": "echo"} if what == "b" else {}
            ours.sendall(Frame({"id": number, "timeout": 1, **more}).encode())
        server.take_in()
        for _ in asked:
            server.free_a_slot()
        assert server.started == started


def test_targets_are_loaded_while_there_is_nothing_to_do_and_their_errors_are_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fork_server, "_check_threads", lambda: None)  # pytest's plugins have some
    ours, theirs = socket.socketpair()
    with ours, theirs:
        server = Slots(theirs)
        server.playbooks.unloaded = dict.fromkeys(["echo", "broken", "last"])
        server.free_a_slot()
        assert server.playbooks.loaded == ["echo"]
        ours.sendall(Frame({"id": 1, "timeout": 1, "long_lived": "last"}).encode())
        server.take_in()
        assert (server.started, server.playbooks.loaded) == ([1], ["echo"]), "a request that came meanwhile is first"
        server.started.clear()
        for _ in range(2):
            server.take_in()
        assert server.playbooks.loaded == ["echo", "broken", "last"]
        (warning,) = FrameReader().feed(ours.recv(65536))
        assert warning.header["type"] == "warning"
        assert warning.header["message"] == str(TaskFailure("broken", "is broken"))
