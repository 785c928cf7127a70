"""A daemon is started, recorded at once, and waited for; one that does not get ready is killed."""

import subprocess
import sys
from pathlib import Path

import pytest
from devtools.testbed.base import process
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.offline import notify

DAEMON = """
import os, socket, sys, time
for state in sys.argv[2:]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(state.encode(), os.environ["NOTIFY_SOCKET"])
print("started", flush=True)
time.sleep(float(sys.argv[1]))
"""


def started(folder: Path, seconds: float, *states: str, timeout: float = 20) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", DAEMON, str(seconds), *states]
    recorded: list[process.ProcessId] = []
    try:
        return notify.start(command, folder / "daemon.log", folder / "ready", timeout, {}, record=recorded.append)
    finally:
        (only,) = recorded
        (folder / "pid").write_text(str(only.pid))
        assert not (folder / "ready").exists()


def test_a_daemon_that_is_ready_runs(tmp_path: Path) -> None:
    child = started(tmp_path, 600, "STATUS=loading", "READY=1")
    try:
        assert process.alive(process.identity(child))
        assert child.pid == int((tmp_path / "pid").read_text())
    finally:
        process.end(process.identity(child), 5)
        child.wait()


@pytest.mark.parametrize(
    ("seconds", "states", "timeout", "message"),
    [
        (0, (), 20, "daemon exited during startup:\n.*started"),
        (600, ("STATUS=loading",), 0.5, "daemon was not ready after"),
    ],
)
def test_one_that_is_not_is_killed(
    tmp_path: Path, seconds: float, states: tuple[str, ...], timeout: float, message: str
) -> None:
    with pytest.raises(ClusterError, match=message):
        started(tmp_path, seconds, *states, timeout=timeout)
    assert process.identify(int((tmp_path / "pid").read_text())) is None
