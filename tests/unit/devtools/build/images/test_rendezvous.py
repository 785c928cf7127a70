"""Waiting for the scheduler: retries, a timeout and log messages."""

from __future__ import annotations

import socket

import pytest
from support import example_programs

rendezvous = example_programs.load("shared/rendezvous.py")

NO_NAME = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
REFUSED = ConnectionRefusedError(111, "Connection refused")


class Attempts:
    """A peer that returns the next outcome for each attempt (repeating the last one), and a clock."""

    def __init__(self, *outcomes: Exception | None) -> None:
        self.outcomes = list(outcomes)
        self.now = 0.0
        self.messages: list[str] = []

    def connect(self, host: str, port: int) -> None:
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if outcome:
            raise outcome

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def wait(self, timeout: float = 60) -> None:
        rendezvous.wait_for(
            "root", 9091, timeout, self.messages.append, connect=self.connect, clock=lambda: self.now, sleep=self.sleep
        )


def test_a_peer_that_responds_at_once_is_not_logged() -> None:
    attempts = Attempts(None)
    attempts.wait()
    assert (attempts.messages, attempts.now) == ([], 0)


def test_each_new_reason_is_logged_once_and_then_the_success() -> None:
    attempts = Attempts(NO_NAME, NO_NAME, REFUSED, REFUSED, None)
    attempts.wait()
    assert attempts.messages == [
        "waiting: the name root does not resolve (Name or service not known)",
        "waiting: root:9091 does not answer (Connection refused)",
        "root:9091 answered after 2.0 s",
    ]


def test_a_long_wait_is_repeated_every_ten_seconds() -> None:
    attempts = Attempts(REFUSED)
    with pytest.raises(TimeoutError):
        attempts.wait(35)
    assert len(attempts.messages) == 4


def test_the_wait_ends_with_the_last_reason() -> None:
    attempts = Attempts(NO_NAME)
    with pytest.raises(TimeoutError, match="gave up after 5 s: the name root does not resolve"):
        attempts.wait(5)
    assert attempts.now == 5


def test_a_real_listener_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        rendezvous.wait_for("127.0.0.1", listener.getsockname()[1], 5, print)
