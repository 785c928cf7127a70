"""A process is identified by its pid and start time: a reused pid is another process."""

import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from devtools.testbed.base import process


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(["sleep", "600"])
    yield child
    child.kill()
    child.wait()


STAT = "42 (a (b) c) S 7 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 98765 0 0"


def test_reads_fields_behind_a_name_with_parentheses_and_spaces() -> None:
    assert process.parse_stat(STAT) == process.Stat("S", 7, 98765)


def test_own_process_is_alive_and_the_child_of_its_parent() -> None:
    me = process.identify(os.getpid())
    assert me is not None and process.alive(me)
    assert me in process.children(os.getppid())


def test_no_process_has_no_identity() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    assert process.identify(child.pid) is None
    assert not process.alive(None)


@pytest.mark.parametrize("change", [{"start": 1}, {"boot": "another boot"}])
def test_a_reused_pid_is_neither_alive_nor_signalled(
    sleeper: subprocess.Popen[bytes], change: dict[str, object]
) -> None:
    real = process.identify(sleeper.pid)
    assert real is not None
    other = dataclasses.replace(real, **change)
    assert not process.alive(other)
    process.send(other, signal.SIGKILL)
    process.end(other, 0)
    assert process.wait_end(other, 0), "waiting for an exited process returns at once"
    assert sleeper.poll() is None and process.alive(real)


def test_end_waits_for_the_end(sleeper: subprocess.Popen[bytes]) -> None:
    real = process.identify(sleeper.pid)
    assert real is not None
    process.end(real, 10)
    assert not process.alive(real)
    assert sleeper.wait(timeout=5) == -signal.SIGTERM


def test_end_kills_a_process_that_ignores_sigterm() -> None:
    script = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        process.end(process.identify(child.pid), 0.2)
        assert child.wait(timeout=5) == -signal.SIGKILL
    finally:
        child.kill()
        child.wait()


def test_wait_end_gives_up(sleeper: subprocess.Popen[bytes]) -> None:
    real = process.identify(sleeper.pid)
    assert real is not None
    started = time.monotonic()
    assert not process.wait_end(real, 0.1)
    assert time.monotonic() - started < 5
