"""The runner in real processes: the fork server loads Ansible and forks children, and tests kill some of them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from dljob_operator.runner import RunEnding, RunnerClient, RunRequest, RunResult, Target
from dljob_operator.runner.client import RunnerError, _PendingRun
from dljob_operator.runner.messages import Frame

_ROLES = {
    "echo": """
      - name: Show
        ansible.builtin.set_fact:
          shown: "{{ word }}"
      - name: Report
        ansible.builtin.set_fact:
          dljob_unused: true
        register: reported
      - name: Report
        report: {value: "{{ shown }}", seen: "{{ ansible_operator_meta | default({}) }}"}
    """,
    "fails": """
      - name: Break
        ansible.builtin.fail: {msg: "no {{ word }}"}
      - name: Never
        ansible.builtin.debug: {msg: never}
    """,
    "rescues": """
      - name: Try
        block:
          - name: Break
            ansible.builtin.fail: {msg: first}
        rescue:
          - name: Mend
            ansible.builtin.debug: {msg: mended}
        always:
          - name: Always
            ansible.builtin.debug: {msg: always}
    """,
    "fails_in_rescue": """
      - name: Try
        block:
          - name: Break
            ansible.builtin.fail: {msg: first}
        rescue:
          - name: Break again
            ansible.builtin.fail: {msg: second}
    """,
    "fails_after_rescue": """
      - name: Try
        block:
          - name: Break
            ansible.builtin.fail: {msg: first}
        rescue:
          - name: Mend
            ansible.builtin.debug: {msg: mended}
      - name: Break later
        ansible.builtin.fail: {msg: third}
    """,
    "ignores": """
      - name: Break
        ansible.builtin.fail: {msg: whatever}
        ignore_errors: true
    """,
    "loops": """
      - name: Each
        ansible.builtin.assert: {that: "item < 2", fail_msg: "{{ item }} is too much", quiet: true}
        loop: [1, 2, 3]
    """,
    "adds": """
      - name: Add a host
        ansible.builtin.add_host: {name: added, groups: [more]}
      - name: Add a group
        ansible.builtin.group_by: {key: "{{ word }}"}
      - name: Report
        report: {value: "{{ [groups['more'], groups[word]] }}"}
    """,
    "facts": """
      - name: See what another run has left
        ansible.builtin.fail: {msg: "seen {{ left }}"}
        when: left is defined
      - name: Leave something
        ansible.builtin.set_fact: {left: behind}
    """,
    "waits": """
      - name: Wait
        report: {value: waiting, hold: "{{ pid_file }}"}
    """,
    "crashes": """
      - name: Crash
        report: {value: crashing, crash: "{{ pid_file }}"}
    """,
    "batch": """
      - name: Batch
        report: {value: "{{ dljob_batch | length }}", note: "{{ note_file | default('') }}"}
    """,
    "prints": """
      - name: Print
        report: {value: printing, flood: true}
    """,
    "broken": "- name: [",
}
# An action of the test's own: it reports what it was given, and can hold or kill the run.
_REPORT = """
import os, pathlib, subprocess, signal
from ansible.plugins.action import ActionBase

class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        given = dict(self._task.args)
        if given.get("hold"):
            # A grandchild in a session of its own, as a module may have: it must not outlive the run either.
            other = subprocess.Popen(["sleep", "600"], start_new_session=True)
            written = pathlib.Path(given["hold"] + ".new")
            written.write_text(f"{os.getppid()} {os.getpid()} {other.pid}")
            written.rename(given["hold"])
            other.wait()
        if given.get("flood"):
            # The worker's own output leads nowhere; its parent's is the run's.
            with open(f"/proc/{os.getppid()}/fd/1", "w") as output:
                while True:
                    output.write("x" * 65536)
        if given.get("crash"):
            pathlib.Path(given["crash"]).write_text(str(os.getpid()))
            os.kill(os.getppid(), signal.SIGKILL)
            signal.pause()
        if given.get("note"):
            with open(given["note"], "a") as file:
                file.write("run\\n")
        result["changed"] = True
        result["dljob"] = {"requeue_after": None, "value": given["value"], "seen": given.get("seen")}
        return result
"""


@pytest.fixture(scope="module")
def roles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("warm")
    for name, tasks in _ROLES.items():
        (root / "roles" / name / "tasks").mkdir(parents=True)
        (root / "roles" / name / "tasks" / "main.yml").write_text(textwrap.dedent(tasks))
        (root / "roles" / name / "action_plugins").mkdir()
        (root / "roles" / name / "action_plugins" / "report.py").write_text(_REPORT)
    (root / "play.yml").write_text(
        "- hosts: localhost\n  gather_facts: false\n  tasks:\n"
        "    - {name: In a playbook, report: {value: \"{{ word | shout }}\"}}\n"
    )  # fmt: skip
    (root / "action_plugins").mkdir()
    (root / "action_plugins" / "report.py").write_text(_REPORT)
    (root / "filter_plugins").mkdir()
    (root / "filter_plugins" / "shout.py").write_text(
        "class FilterModule:\n    def filters(self): return {'shout': lambda s: s.upper() + '!'}\n"
    )
    return root


def _targets(root: Path) -> list[Target]:
    # Those that say so are run once while warming.
    found = [Target(name, role=root / "roles" / name, batchable=name in ("batch", "facts")) for name in _ROLES]
    return [*found, Target("playbook", playbook=root / "play.yml")]


@pytest.fixture(scope="module")
def runner(roles: Path) -> Iterator[RunnerClient]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ANSIBLE_CONFIG", raising=False)
        warm = RunnerClient(_targets(roles), concurrency=2)
    warm.start()
    warm.wait_ready(60)
    yield warm
    warm.close()


Run = Callable[..., RunResult]


@pytest.fixture
def run(runner: RunnerClient) -> Run:
    def run_one(target: str, timeout: float = 60, unsafe: frozenset[str] = frozenset(), **values: Any) -> RunResult:
        return runner.run(RunRequest(target, values, unsafe, timeout=timeout))

    return run_one


def test_no_other_process_can_reach_the_fork_server(runner: RunnerClient) -> None:
    """Its socket has no path and no name, so only who inherits it has it."""
    control = runner._socket  # noqa: SLF001 - nothing outside of it may have it
    assert control is not None
    assert control.family == socket.AF_UNIX
    assert (control.getsockname(), control.getpeername()) == ("", "")


def _wait_for(path: Path) -> str:
    """Wait until a run has written `path`. There is no event to wait on across processes but the file itself."""
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} was not written"
        time.sleep(0.01)
    return path.read_text()


def _is_running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat[stat.rindex(")") + 2] != "Z"


def _assert_all_end(pids: list[int]) -> None:
    deadline = time.monotonic() + 10
    while still := [pid for pid in pids if _is_running(pid)]:
        assert time.monotonic() < deadline, f"{still} outlived the run"
        time.sleep(0.01)


def test_a_run_reports_counts_and_prints(run: Run) -> None:
    result = run("echo", word="hello")
    assert result.ok, result
    assert result.stats["ok"] == 3
    assert result.stats["changed"] == 1
    assert result.reports[0]["value"] == "hello"
    assert "changed: echo : Report" in result.output
    assert 0 < result.seconds < 60


def test_runs_see_neither_each_other_nor_the_warm_up(run: Run) -> None:
    assert run("facts").ok
    assert run("facts").ok
    assert run("echo", word="one").reports[0]["value"] == "one"
    assert run("echo", word="two").reports[0]["value"] == "two"


@pytest.mark.parametrize("text", ["{{ 1+1 }}", "{% raw %}x", "{{ lookup('pipe', 'false') }}", "{# c #}"])
def test_an_unsafe_string_is_never_a_template(run: Run, text: str) -> None:
    meta = {"name": text, "deep": [{"er": text}]}
    result = run("echo", unsafe=frozenset({"word", "ansible_operator_meta"}), word=text, ansible_operator_meta=meta)
    assert result.ok, result
    assert result.reports[0]["value"] == text
    assert result.reports[0]["seen"] == meta


def test_a_string_that_is_not_unsafe_is_a_template(run: Run) -> None:
    assert str(run("echo", word="{{ 1+1 }}").reports[0]["value"]) == "2"
    assert run("echo", word="{{ other }}", other="x").reports[0]["value"] == "x"


def test_a_failed_task_is_named_with_its_message(run: Run) -> None:
    result = run("fails", word="luck")
    assert result.ending is RunEnding.COMPLETED
    assert not result.ok
    assert [(failure.task, failure.message) for failure in result.failures] == [("fails : Break", "no luck")]
    assert "never" not in result.output


@pytest.mark.parametrize("target", ["rescues", "ignores"])
def test_a_rescued_or_ignored_failure_does_not_count(run: Run, target: str) -> None:
    result = run(target)
    assert result.ok, result
    assert result.stats["rescued" if target == "rescues" else "ignored"] == 1


@pytest.mark.parametrize(("target", "message"), [("fails_in_rescue", "second"), ("fails_after_rescue", "third")])
def test_only_the_failure_that_was_not_rescued_counts(run: Run, target: str, message: str) -> None:
    assert [failure.message for failure in run(target).failures] == [message]


def test_all_failed_items_of_a_loop_are_reported(run: Run) -> None:
    assert run("loops").message == "loops : Each: 2 is too much; 3 is too much"


def test_the_fork_server_has_no_threads_and_its_runs_can_add_hosts(runner: RunnerClient, run: Run) -> None:
    """From ansible-core 2.21 on, tasks ask a server for that, whose threads are in the process of the run."""
    assert [run("adds", word=word).reports[0]["value"] for word in ("a", "b")] == [[["added"], ["localhost"]]] * 2
    assert len(list(Path(f"/proc/{runner.pid}/task").iterdir())) == 1


def test_a_role_that_cannot_be_parsed_fails_its_own_runs_only(run: Run) -> None:
    result = run("broken")
    assert result.ending is RunEnding.COMPLETED
    assert "main.yml" in result.message
    assert run("echo", word="still").ok


def test_a_playbook_finds_its_own_plugins(run: Run) -> None:
    result = run("playbook", word="hey")
    assert result.ok, result
    assert result.reports[0]["value"] == "HEY!"


def test_a_batchable_role_is_preloaded_with_an_empty_batch(run: Run, tmp_path: Path) -> None:
    note = tmp_path / "note"
    result = run("batch", dljob_batch=[{}, {}], note_file=str(note))
    assert result.ok, result
    assert str(result.reports[0]["value"]) == "2"
    assert note.read_text() == "run\n"


_TIMEOUTS = (2, 8, 32)
"""Seconds of the tries until a run has reached its task: on a busy machine Ansible takes that long."""


def test_a_run_that_times_out_is_killed_with_its_descendants(runner: RunnerClient, run: Run, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    for timeout in _TIMEOUTS:
        started = time.monotonic()
        result = run("waits", timeout=timeout, pid_file=str(pids))
        assert result.ending is RunEnding.TIMED_OUT
        assert f" {timeout} s" in result.message
        assert time.monotonic() - started < timeout + 13
        assert runner.running == 0, "another run may begin"
        if pids.exists():
            break
    _assert_all_end([int(pid) for pid in pids.read_text().split()])


def test_a_run_that_prints_without_end_does_not_block_others(runner: RunnerClient) -> None:
    for timeout in _TIMEOUTS:
        flood = runner.submit(RunRequest("prints", {}, timeout=timeout))
        assert runner.run(RunRequest("echo", {"word": "meanwhile"}, timeout=60)).ok
        result = flood.result(timeout + 30)
        assert result.ending is RunEnding.TIMED_OUT
        if len(result.output) > 1000:
            break
    assert 1000 < len(result.output) <= 16 * 1024


def test_a_child_that_is_killed_ends_its_own_run_only_and_its_workers(run: Run, tmp_path: Path) -> None:
    result = run("crashes", pid_file=str(tmp_path / "pid"))
    assert result.ending is RunEnding.CRASHED
    assert "signal 9" in result.message
    _assert_all_end([int((tmp_path / "pid").read_text())])
    assert run("echo", word="fine").ok


def test_no_more_than_the_concurrency_run_at_a_time(runner: RunnerClient, tmp_path: Path) -> None:
    files = [tmp_path / f"run-{number}" for number in range(3)]
    futures = [runner.submit(RunRequest("waits", {"pid_file": str(file)}, timeout=120)) for file in files]
    pids = [[int(pid) for pid in _wait_for(file).split()] for file in files[:2]]
    assert runner.running == 2
    assert not files[2].exists()
    os.kill(pids[0][0], signal.SIGKILL)
    pids.append([int(pid) for pid in _wait_for(files[2]).split()])
    for child, _, _ in pids[1:]:
        os.kill(child, signal.SIGKILL)
    assert [future.result(30).ending for future in futures] == [RunEnding.CRASHED] * 3
    _assert_all_end([pid for processes in pids for pid in processes])


def test_a_killed_fork_server_ends_its_runs_and_is_replaced(runner: RunnerClient, tmp_path: Path) -> None:
    future = runner.submit(RunRequest("waits", {"pid_file": str(tmp_path / "pids")}))
    pids = [int(pid) for pid in _wait_for(tmp_path / "pids").split()]
    old = runner.pid
    assert old is not None
    os.kill(old, signal.SIGKILL)
    result = future.result(30)
    assert result.ending is RunEnding.CRASHED
    assert "signal 9" in result.message
    _assert_all_end(pids)
    # A request for the next process waits until that one is warm.
    assert runner.run(RunRequest("echo", {"word": "again"})).ok
    assert runner.pid not in (old, None)


def test_closing_cancels_pending_runs_and_leaves_no_process(roles: Path, tmp_path: Path) -> None:
    warm = RunnerClient(_targets(roles), concurrency=1)
    warm.start()
    running = warm.submit(RunRequest("waits", {"pid_file": str(tmp_path / "pids")}))
    queued = warm.submit(RunRequest("echo", {"word": "x"}))
    pids = [int(pid) for pid in _wait_for(tmp_path / "pids").split()]
    fork_server = warm.pid
    assert fork_server is not None
    warm.close()
    warm.close()
    assert running.result(0).ending is RunEnding.CANCELLED
    assert queued.result(0).ending is RunEnding.CANCELLED
    assert warm.run(RunRequest("echo", {"word": "x"})).ending is RunEnding.CANCELLED
    _assert_all_end([*pids, fork_server])


def test_a_fork_server_that_loads_ansible_ends_with_the_engine(tmp_path: Path) -> None:
    """As after SIGKILL of the engine; it leaves neither a process nor its scratch directory."""
    (tmp_path / "jmespath.py").write_text(
        "import os, pathlib, subprocess\n"
        "child = subprocess.Popen(['sleep', '60'])\n"
        f"pathlib.Path({str(tmp_path / 'pids.new')!r}).write_text(f'{{os.getpid()}} {{child.pid}}')\n"
        f"os.rename({str(tmp_path / 'pids.new')!r}, {str(tmp_path / 'pids')!r})\n"
        "child.wait()\n"
    )
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "dljob_operator.runner.fork_server", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
        )
    with ours:
        config = {"targets": [], "concurrency": 1, "idle": 60, "scratch": str(scratch)}
        ours.sendall(Frame({"type": "configure"}, json.dumps(config).encode()).encode())
        pids = [int(pid) for pid in _wait_for(tmp_path / "pids").split()]
        # a request arrives with a signal too
        ours.sendall(Frame({"type": "run"}, b"").encode())
        time.sleep(0.1)
        assert process.poll() is None
    try:
        assert process.wait(10) == 0
        _assert_all_end(pids)
        assert not scratch.exists()
    finally:
        process.kill()


def test_a_fork_server_that_cannot_load_ansible_reports_the_error_and_fails_pending_runs(
    roles: Path, tmp_path: Path
) -> None:
    (tmp_path / "ansible").mkdir()
    (tmp_path / "ansible" / "__init__.py").write_text("raise RuntimeError('no Ansible today')")
    environ = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    warm = RunnerClient(_targets(roles), environ=environ)
    waiting = warm.submit(RunRequest("echo", {"word": "x"}))
    warm.start()
    try:
        with pytest.raises(RunnerError, match="no Ansible today"):
            warm.wait_ready(60)
        assert "no Ansible today" in waiting.result(30).message
    finally:
        warm.close()


def test_many_threads_may_ask_at_once(runner: RunnerClient) -> None:
    results: dict[int, RunResult] = {}

    def ask(number: int) -> None:
        results[number] = runner.run(RunRequest("echo", {"word": f"w{number}"}))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {number: result.reports[0]["value"] for number, result in results.items()} == {
        number: f"w{number}" for number in range(8)
    }


def test_a_slot_that_has_just_become_free_is_not_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for it was sent long ago, and starts a moment after the run that had the slot has ended."""
    client = RunnerClient([], concurrency=1)
    now = time.monotonic()
    request = RunRequest("echo", {})
    client._pending_runs = {  # noqa: SLF001 - no other way to such a moment
        1: _PendingRun(request, Future(), print, sent=now - 90, started=now - 40, pid=1),
        2: _PendingRun(request, Future(), print, sent=now - 40),
    }
    is_stuck, receive = client._is_stuck, client._handle_frame  # noqa: SLF001 - no other way to such a moment
    assert not is_stuck()
    receive(Frame({"type": "done", "id": 1, "ending": RunEnding.TIMED_OUT, "seconds": 40.0, "output": ""}, b"{}"))
    assert list(client._pending_runs) == [2]  # noqa: SLF001 - no other way to such a moment
    assert not is_stuck()
    monkeypatch.setattr(time, "monotonic", lambda: now + 31)
    assert is_stuck(), "31 s later it has still not started"
