"""The client of the fork server survives what a dying child or a bug leaves in the stream."""

from __future__ import annotations

import errno
import json
import socket
import tempfile
import threading
from typing import Any

import pytest
from support.polling import until

from dljob_operator.runner import RunEnding, RunnerClient, RunRequest
from dljob_operator.runner.client import _result
from dljob_operator.runner.messages import Frame

WHOLE = json.dumps({"failures": [], "stats": {}, "reports": []}).encode()


@pytest.mark.parametrize("body", [b"", WHOLE[:10], b"[]", b"null", b"{}", b'{"failures": 3}'])
def test_a_result_that_was_cut_off_is_a_crash(body: bytes) -> None:
    """A child that is killed while it writes its result left truncated JSON, which ended the supervisor for ever."""
    header = {"ending": RunEnding.COMPLETED, "seconds": 0.1, "output": "", "exit": -9}
    result = _result(Frame(header, body), RunRequest("echo", {}))
    assert result.ending is RunEnding.CRASHED
    assert "while it wrote its result" in result.message


def test_an_error_of_the_supervision_ends_the_runs_and_not_the_supervision(monkeypatch: pytest.MonkeyPatch) -> None:
    client = RunnerClient([])
    began = threading.Semaphore(0)

    def broken() -> Any:
        began.release()
        raise RuntimeError("a bug")

    monkeypatch.setattr(socket, "socketpair", broken)
    waiting = client.submit(RunRequest("echo", {}))
    client.start()
    try:
        assert "a bug" in waiting.result(10).message
        assert began.acquire(timeout=10)
        assert began.acquire(timeout=10), "it tries again"
        assert client.problem() == ""
    finally:
        client.close()
    assert client.problem() == ""


def test_without_space_for_its_directory_the_runs_fail_until_there_is_some(monkeypatch: pytest.MonkeyPatch) -> None:
    client = RunnerClient([])
    real, full, began = tempfile.mkdtemp, threading.Event(), threading.Event()
    full.set()

    def mkdtemp(prefix: str) -> str:
        if full.is_set():
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(prefix=prefix)

    def begin() -> Any:
        began.set()
        raise OSError("no socket")

    monkeypatch.setattr(tempfile, "mkdtemp", mkdtemp)
    monkeypatch.setattr(socket, "socketpair", begin)
    waiting = client.submit(RunRequest("echo", {}))
    client.start()
    try:
        result = waiting.result(10)
        assert result.ending is RunEnding.CRASHED
        assert result.message == "cannot start the Ansible fork server: [Errno 28] No space left on device"
        full.clear()
        assert began.wait(10), "it tries again"
        assert client.problem() == ""
    finally:
        client.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_supervision_that_has_ended_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def ends_the_thread(prefix: str) -> str:
        raise SystemExit

    monkeypatch.setattr(tempfile, "mkdtemp", ends_the_thread)
    client = RunnerClient([])
    client.start()
    until(client.problem)
    assert client.problem() == "the thread that supervises the fork server has ended"
    client.close()
