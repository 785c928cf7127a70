"""The demo shows what changes of a job and of its pods, and ignores a lost connection when the job is over."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any

import pytest
from devtools.lab.demo.training import Training
from devtools.testbed.client import Client, Refused

MANIFEST = {"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "metadata": {"name": "digits"}}


class Log(Client):
    """A client of a log with these lines, and then an error. ``paths`` are those asked for."""

    def __init__(self, *lines: bytes, error: Exception | None = None) -> None:
        self.found, self.error = lines, error
        self.paths: queue.SimpleQueue[str] = queue.SimpleQueue()

    def connect(self, timeout: float | None) -> Any: ...

    def lines(self, connection: Any, path: str, accept: str = "") -> Iterator[bytes]:
        self.paths.put(path)
        yield from self.found
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize("error", [ConnectionResetError("ended prematurely"), Refused(403, "ended prematurely")])
def test_a_lost_connection_is_reported_only_while_the_job_runs(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    training = Training(Log(b"epoch 1\n", error=error), MANIFEST)
    training.follow_log("/log")
    output = capsys.readouterr().out
    assert "worker 0 | epoch 1\n" in output
    assert "cannot be followed: " in output and "prematurely" in output

    training.over.set()
    training.follow_log("/log")
    assert "cannot be followed" not in capsys.readouterr().out


def pod(name: str, index: str, phase: str) -> dict[str, Any]:
    labels = {"dljob.operator/replica-type": name, "dljob.operator/replica-index": index}
    metadata = {"name": f"digits-{name}-{index}", "labels": labels}
    return {"metadata": metadata, "spec": {"containers": [{"name": "mxnet"}]}, "status": {"phase": phase}}


def test_each_phase_is_shown_once_and_the_log_of_worker_0_is_followed(capsys: pytest.CaptureFixture[str]) -> None:
    client = Log()
    training = Training(client, MANIFEST)
    for one in (pod("worker", "0", "Pending"), *[pod("worker", "0", "Running")] * 2, pod("server", "0", "Running")):
        training.pod_changed("MODIFIED", one, 0.0)
    training.pod_changed("DELETED", pod("server", "0", "Running"), 0.0)
    shown = [line.split(" s  ")[1] for line in capsys.readouterr().out.splitlines()]
    assert shown == [
        "pod digits-worker-0: Pending", "pod digits-worker-0: Running",
        "pod digits-server-0: Running", "pod digits-server-0: Deleted",
    ]  # fmt: skip
    assert client.paths.get(timeout=10).endswith("/pods/digits-worker-0/log?container=mxnet&follow=true")
    assert client.paths.empty()


@pytest.mark.parametrize(("phase", "is_over"), [("Running", False), ("Done", True), ("Failed", True)])
def test_the_job_is_over_in_a_final_phase(phase: str, is_over: bool, capsys: pytest.CaptureFixture[str]) -> None:
    training = Training(Log(), MANIFEST)
    training.job_changed("ADDED", {}, 0.0)
    assert not capsys.readouterr().out
    for _ in range(2):
        training.job_changed("MODIFIED", {"status": {"phase": phase, "state": "x", "reason": "why"}}, 0.0)
    assert capsys.readouterr().out.count(f"job: {phase}, state x, replicas - (why)\n") == 1
    assert training.over.is_set() == is_over
