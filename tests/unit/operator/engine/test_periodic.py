"""A thread that does something at intervals."""

from __future__ import annotations

import threading

import pytest

from dljob_operator.engine.periodic import Periodic


def test_it_calls_its_task_until_it_is_stopped(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[bool] = []
    stopped = threading.Event()

    def task() -> None:
        seen.append(periodic.is_stopping)
        if len(seen) == 1:
            raise ValueError("broken")
        periodic.stop()
        seen.append(periodic.is_stopping)
        stopped.set()

    periodic = Periodic("leftovers", task, 0.001)
    periodic.start()
    assert stopped.wait(10), "an error of the first call has not ended the thread"
    assert periodic.join(10)
    assert seen == [False, False, True]
    assert "leftovers: internal error" in caplog.text


def test_the_first_call_is_after_an_interval() -> None:
    called = threading.Event()
    periodic = Periodic("leftovers", called.set, 3600)
    periodic.start()
    periodic.stop()
    assert periodic.join(10)
    assert not called.is_set()
