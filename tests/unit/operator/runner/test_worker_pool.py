"""The workers of all roles whose task reports its declaration are the same, and idle ones end."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import signal
import socket
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dljob_operator.runner import RunEnding, RunnerClient, RunRequest, RunResult, Target, fork_server

_TASK = """
    import os, time
    from ansible.plugins.action import ActionBase
    from ansible_collections.dljob.operator.plugins.module_utils.shared import worker_protocol

    class ActionModule(ActionBase):
        _requires_connection = False

        def run(self, tmp=None, task_vars=None):
            work_source = worker_protocol.current()
            if work_source is None:
                declaration = {"arguments": dict(self._task.args), "files": {"own": self._task.args["says"] + ".txt"}}
                return {"changed": False, "dljob": {"jobs": [], "requeue_after": None, "declaration": declaration}}
            for work in work_source.work():
                time.sleep(work.jobs[0].get("sleep", 0))
                declared = work.declaration
                message = f"{os.getpid()} {work.target} {declared.arguments['says']} {declared.files['own']}"
                jobs = [{"uid": job["uid"], "ok": True, "message": message} for job in work.jobs]
                work_source.report_final({"changed": True, "dljob": {"jobs": jobs}})
            return {"changed": False}
"""


def _role(folder: Path, name: str, arguments: str) -> Target:
    role = folder / name
    (role / "tasks").mkdir(parents=True)
    (role / "action_plugins").mkdir()
    (role / "tasks" / "main.yml").write_text(f"- name: Say\n  says:\n    {arguments}\n")
    (role / "action_plugins" / "says.py").write_text(textwrap.dedent(_TASK))
    return Target(name, role, batchable=True, fixed={"word": name.upper()})


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> list[Target]:
    folder = tmp_path_factory.mktemp("roles")
    says = "says: '{{ word }}'"
    return [
        _role(folder, "one", says),
        _role(folder, "two", says),
        _role(folder, "elsewhere", f"{says}\n    kubeconfig: /other"),
    ]


@contextlib.contextmanager
def _running(targets: list[Target], idle: float) -> Iterator[RunnerClient]:
    runner = RunnerClient(targets, 2, idle=idle)
    runner.start()
    runner.wait_ready(120)
    yield runner
    runner.close()


@pytest.fixture(scope="module")
def client(targets: list[Target]) -> Iterator[RunnerClient]:
    with _running(targets, idle=600) as runner:
        yield runner


def _request(target: str, sleep: float = 0) -> RunRequest:
    values = {"dljob_batch": [{"uid": "1", "sleep": sleep}]}
    return RunRequest(target, values, snapshot={"1": {"Pod": []}}, timeout=60, long_lived=True)


def _words(result: RunResult) -> list[str]:
    assert result.ending is RunEnding.COMPLETED, result
    return str(result.reports[0]["jobs"][0]["message"]).split(" ")


def _children(pid: int | None) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_one_worker_serves_two_roles_each_with_its_declaration(client: RunnerClient) -> None:
    one, two = _words(client.run(_request("one"))), _words(client.run(_request("two")))
    assert one[0] == two[0], "the same process"
    assert (one[1:], two[1:]) == (["one", "ONE", "ONE.txt"], ["two", "TWO", "TWO.txt"])


def test_a_role_that_is_loaded_for_its_first_batch_is_served_by_the_worker_that_there_is(targets: list[Target]) -> None:
    """The requests come before the fork server is ready, so it loads the second role while the first one's batch runs."""
    client = RunnerClient(targets, 1, idle=600)
    runs = [client.submit(_request(target, 0.5)) for target in ("one", "two")]
    client.start()
    try:
        one, two = (_words(run.result(120)) for run in runs)
        assert one[0] == two[0], "the same process"
        assert (one[1:], two[1:]) == (["one", "ONE", "ONE.txt"], ["two", "TWO", "TWO.txt"])
    finally:
        client.close()


def test_a_worker_that_was_started_ahead_serves_the_first_run(
    targets: list[Target], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    client = RunnerClient(targets, 1, idle=600)
    for target in ("two", "one"):
        client.prepare(target)
    client.start()
    try:
        deadline = time.monotonic() + 60
        while caplog.messages.count("worker started") == 0:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert _words(client.run(_request("one")))[1:] == ["one", "ONE", "ONE.txt"]
        assert caplog.messages.count("worker started") == 1
    finally:
        client.close()


def test_a_role_of_another_cluster_has_workers_of_its_own(client: RunnerClient) -> None:
    elsewhere, one = _words(client.run(_request("elsewhere"))), _words(client.run(_request("one")))
    assert elsewhere[0] != one[0]


def test_the_number_of_workers_does_not_depend_on_the_number_of_roles(client: RunnerClient) -> None:
    before = len(_children(client.pid))
    runs = [client.submit(_request(target, 0.2)) for target in ("one", "two") * 4]
    processes = {_words(run.result())[0] for run in runs}
    assert len(processes) <= 2
    assert len(_children(client.pid)) == max(2, before)


def test_a_worker_that_does_not_read_its_request_delays_no_other(client: RunnerClient) -> None:
    stopped = int(_words(client.run(_request("one")))[0])  # the next request is for it again
    os.kill(stopped, signal.SIGSTOP)
    try:
        large = {"1": {"Pod": [{"text": "x" * 1000}] * 4000}}
        slow = client.submit(dataclasses.replace(_request("one"), snapshot=large))
        assert _words(client.submit(_request("two")).result(60))[0] != str(stopped)
        assert not slow.done()
    finally:
        os.kill(stopped, signal.SIGCONT)
    assert _words(slow.result(60))[0] == str(stopped)


def test_a_worker_that_ends_before_it_has_read_its_request_is_reported(client: RunnerClient) -> None:
    stopped = int(_words(client.run(_request("one")))[0])
    os.kill(stopped, signal.SIGSTOP)
    large = {"1": {"Pod": [{"text": "x" * 1000}] * 4000}}
    lost = client.submit(dataclasses.replace(_request("one"), snapshot=large))
    _words(client.run(_request("two")))  # the fork server has begun to write the large one
    os.kill(stopped, signal.SIGKILL)
    assert lost.result(60).ending is RunEnding.CRASHED
    assert _words(client.run(_request("one")))[0] != str(stopped)


def test_a_late_event_of_a_pipe_that_was_closed_meanwhile_is_no_error(tmp_path: Path) -> None:
    """One `select` may return both the end of a worker and that its pipe takes no more."""
    child = fork_server._Child(1, 0, -1, -1, tmp_path, 0.0, 0.0, pool="one")  # noqa: SLF001 - no other way to such a moment
    ours, theirs = socket.socketpair()
    with ours, theirs:
        server = fork_server.ForkServer(ours, Any, tmp_path, fork_server.WorkerLimits(1, 1.0), Any)
        server._write_request(child)  # noqa: SLF001 - no other way to such a moment
        server._close_work_pipe(child)  # noqa: SLF001 - no other way to such a moment


def test_idle_workers_end_and_the_next_request_starts_one(targets: list[Target]) -> None:
    with _running(targets, idle=1.0) as client:
        for run in [client.submit(_request("one", 0.2)) for _ in range(2)]:
            run.result()
        deadline = time.monotonic() + 60
        while _children(client.pid):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert _words(client.run(_request("two")))
