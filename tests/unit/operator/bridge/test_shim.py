"""The contract with ansible-operator: the same runs through our `ansible-runner` and through the real one."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from devtools.build.images.compiled_shim import compiled_shim
from support.ansible_operator import Run, Runs

from dljob_operator.ansible_operator_bridge import controller, supervise
from dljob_operator.ansible_operator_bridge.controller import BridgeController
from dljob_operator.ansible_operator_bridge.server import ShimServer
from dljob_operator.ansible_operator_bridge.shim.dljob_shim import SOCKET
from dljob_operator.ansible_operator_bridge.supervise import COMPILED, Flags
from dljob_operator.engine.controller_settings import ControllerSettings
from dljob_operator.engine.kube import KubeApi
from dljob_operator.engine.requests import targets
from dljob_operator.runner import RunnerClient
from dljob_operator.watches import GVK, Watch
from dljob_operator.watches.model import Finalizer

GROUP = "shim-test.example.com"
BIN = Path(sys.executable).parent
_ROLES = {
    "good": """
      - name: Change
        ansible.builtin.set_fact: {word: "{{ word | default('none') }}"}
        changed_when: true
      - name: Pass by
        ansible.builtin.debug: {msg: never}
        when: false
    """,
    "fails": """
      - name: Break
        ansible.builtin.fail: {msg: "no {{ word }}"}
    """,
    "rescues": """
      - name: Try
        block:
          - name: Break
            ansible.builtin.fail: {msg: rescued boom}
        rescue:
          - name: Mend
            ansible.builtin.debug: {msg: mended}
    """,
    "rescues_and_fails": """
      - name: Try
        block:
          - name: Break
            ansible.builtin.fail: {msg: rescued boom}
        rescue:
          - name: Mend
            ansible.builtin.debug: {msg: mended}
      - name: Break for good
        ansible.builtin.fail: {msg: final}
    """,
    "ignores": """
      - name: Break
        ansible.builtin.fail: {msg: whatever}
        ignore_errors: true
    """,
    "requeues": """
      - name: Come again
        requeue_after: {time: 90s}
    """,
    "expects": """
      - name: Strings of a job are no templates
        ansible.builtin.assert:
          that:
            - word == expected
            - ansible_operator_meta.name == _shim_test_example_com_echojob.metadata.name
            - _shim_test_example_com_echojob_spec.word == expected
          fail_msg: "{{ word }} {{ ansible_operator_meta }}"
        vars:
          expected: !unsafe "{{ 1 + 1 }}"
    """,
    "facts": """
      - name: Facts are there if they were asked for
        ansible.builtin.assert: {that: "(ansible_facts.python_version is defined) == (wanted | bool)", quiet: true}
    """,
    "broken": """
      - name: Break
        no.such.action: {}
    """,
}
# The action that ansible-operator looks for by its bare name, as a role of a user's own has it
_REQUEUE = """
from ansible.plugins.action import ActionBase

class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        return {**super().run(tmp, task_vars), "changed": False, "period": self._task.args["time"]}
"""
_PLAYBOOK = """
- hosts: localhost
  gather_facts: false
  tasks:
    - name: Break
      ansible.builtin.fail: {msg: "by playbook, {{ ansible_operator_meta.name }}"}
"""

Do = Callable[..., Run]


@pytest.fixture(scope="module")
def roles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("shim") / "roles"
    for name, tasks in _ROLES.items():
        (root / name / "tasks").mkdir(parents=True)
        (root / name / "tasks" / "main.yml").write_text(textwrap.dedent(tasks))
    (root / "requeues" / "action_plugins").mkdir()
    (root / "requeues" / "action_plugins" / "requeue_after.py").write_text(_REQUEUE)
    (root.parent / "playbook.yml").write_text(_PLAYBOOK)
    return root


def _kind(role: str) -> str:
    return "EchoJob" if role == "expects" else role.replace("_", "").title() + "Job"


@pytest.fixture(scope="module")
def warm(roles: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of an ansible-operator that was started by `dljob-operator serve`, on a cluster that never answers."""
    watches = [Watch(GVK(GROUP, "v1", _kind(name)), role=roles / name) for name in _ROLES]
    watches.append(Watch(GVK(GROUP, "v1", "PlayedJob"), playbook=roles.parent / "playbook.yml"))
    watches.append(
        Watch(GVK(GROUP, "v1", "FinalJob"), role=roles / "good", finalizer=Finalizer("x/y", role=roles / "fails"))
    )
    folder = tmp_path_factory.mktemp("warm")
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(
        yaml.safe_dump(
            {
                "current-context": "none",
                "contexts": [{"name": "none", "context": {"cluster": "none", "user": "none"}}],
                "clusters": [{"name": "none", "cluster": {"server": "http://127.0.0.1:9"}}],
                "users": [{"name": "none", "user": {}}],
            }
        )
    )
    runner = RunnerClient(targets(watches), environ={**os.environ, "KUBECONFIG": str(kubeconfig)})
    runner.start()
    bridge = BridgeController(watches, KubeApi.connect(kubeconfig), runner, ControllerSettings(run_timeout=60), Flags())
    server = ShimServer(folder / "s" / "socket", bridge)
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(controller, "FIRST_LIST", 0)
        yield supervise.child_environ({**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}, folder / "s" / "socket")
    server.stop()
    runner.close()


@pytest.fixture(scope="module")
def compiled(warm: dict[str, str]) -> dict[str, str]:
    """The same with the compiled shim, as in the image."""
    shim = str(compiled_shim())
    socket_path = Path(warm[SOCKET])
    return supervise.child_environ({**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", COMPILED: shim}, socket_path)


@pytest.fixture(scope="module")
def cold() -> dict[str, str]:
    """The environment of an ansible-operator that runs the real ansible-runner."""
    return {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}


@pytest.fixture(params=["warm", "compiled", "cold"])
def do(request: pytest.FixtureRequest, roles: Path, tmp_path: Path) -> Do:
    """Runs a role for a job whose kind has it, by both of our `ansible-runner`s and by the real one."""
    environ = request.getfixturevalue(request.param)
    runs = Runs(tmp_path / "runner", environ, tmp_path)

    def run(role: str, *, spec: Any = None, kind: str = "", playbook: str = "", **options: Any) -> Run:
        what = {"playbook": roles.parent / playbook} if playbook else {"role": roles / role}
        return runs.run(job(kind or _kind(role), spec), **what, **options)

    run.warm = request.param != "cold"  # type: ignore[attr-defined]
    return run


def job(kind: str, spec: Any = None, name: str = "digits") -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "7"},
        "spec": {"word": "hello"} if spec is None else spec,
    }


def deciding(run: Run) -> list[str]:
    names = [event["event"] for event in run.events]
    return [name for name in names if name in ("playbook_on_stats", "runner_on_failed", "runner_on_unreachable")]


def test_a_good_run(do: Do) -> None:
    """Its outcome, and that every event has what the receiver needs."""
    run = do("good")
    assert run.code == 0
    assert run.refused == []
    assert deciding(run) == ["playbook_on_stats"]
    assert run.result.ok
    counts = {key: run.result.stats[key] for key in ("ok", "changed", "skipped", "failures")}
    assert counts == {"ok": {"localhost": 1}, "changed": {"localhost": 1}, "skipped": {"localhost": 1}, "failures": {}}
    assert (run.folder / "artifacts" / "latest" / "stdout").is_file()
    assert (run.folder / "artifacts" / run.ident / "rc").read_text() == "0"
    assert not Path(f"/tmp/ansibleoperator-{run.ident}").exists()

    assert run.events[-1]["event"] == "playbook_on_stats"
    assert len({event["uuid"] for event in run.events}) == len(run.events)
    counters = [event["counter"] for event in run.events]
    assert counters == sorted(set(counters))
    tasks = [event for event in run.events if event["event"] == "runner_on_ok"]
    assert [(event["event_data"]["task"], event["event_data"]["res"]["changed"]) for event in tasks] == [
        ("Change", True)
    ]


def test_a_failed_task_fails_the_run_with_its_message(do: Do) -> None:
    run = do("fails")
    assert run.code == 2
    assert run.result.messages == ["no hello"]
    failed = next(event for event in run.events if event["event"] == "runner_on_failed")
    assert failed["event_data"]["task"] == "Break"
    assert not failed["event_data"].get("ignore_errors")
    assert run.result.stats["failures"] == {"localhost": 1}
    assert "no hello" in (run.folder / "artifacts" / run.ident / "stdout").read_text()


def test_an_ignored_failure_is_none(do: Do) -> None:
    run = do("ignores")
    assert run.code == 0
    assert deciding(run) == ["runner_on_failed", "playbook_on_stats"]
    assert run.events[[e["event"] for e in run.events].index("runner_on_failed")]["event_data"]["ignore_errors"] is True
    assert run.result.ok


def test_a_rescued_failure_is_none(do: Do) -> None:
    run = do("rescues")
    assert run.code == 0
    assert deciding(run) == ["runner_on_failed", "playbook_on_stats"]
    if do.warm:  # type: ignore[attr-defined]
        assert run.result.ok
    else:  # the real one does not say so, and ansible-operator repeats such a run for ever
        assert run.result.messages == ["rescued boom"]


def test_a_failure_after_a_rescued_one(do: Do) -> None:
    run = do("rescues_and_fails")
    assert run.code == 2
    assert run.result.messages[-1] == "final"


def test_requeue_after_reaches_ansible_operator(do: Do) -> None:
    run = do("requeues")
    assert run.result.requeue_after == "90s"
    assert run.events[-1]["event"] == "playbook_on_stats"


def test_strings_of_a_job_are_no_templates(do: Do) -> None:
    assert do("expects", spec={"word": "{{ 1 + 1 }}"}).result.ok


@pytest.mark.parametrize(("gathering", "wanted"), [("implicit", "true"), ("explicit", "false")])
def test_facts_are_gathered_unless_disabled(do: Do, gathering: str, wanted: str) -> None:
    assert do("facts", gathering=gathering, extra={"wanted": wanted}).result.ok


def test_a_playbook(do: Do) -> None:
    run = do("", kind="PlayedJob", playbook="playbook.yml")
    assert run.code == 2
    assert run.result.messages == ["by playbook, digits"]


def test_a_finalizer_of_its_own(do: Do) -> None:
    assert do("good", kind="FinalJob").result.ok
    assert do("fails", kind="FinalJob").result.messages == ["no hello"]


def test_old_artifacts_are_removed(do: Do) -> None:
    runs = [do("good", rotate=3) for _ in range(5)]
    assert [run.code for run in runs] == [0] * 5
    idents = [run.ident for run in runs]
    left = {path.name for path in (runs[-1].folder / "artifacts").iterdir()} - {"latest"}
    assert idents[-1] in left
    assert idents[0] not in left
    # the real one counts before its own run, and at times after it, and goes by the folders' times
    assert 1 <= len(left & set(idents)) <= 4


@pytest.mark.parametrize("has_program", [True, False])
def test_the_compiled_shim_is_used_where_there_is_one(tmp_path: Path, has_program: bool) -> None:
    if has_program:
        (tmp_path / "ansible-runner").touch(0o755)
    environ = supervise.child_environ({"PATH": "/bin", COMPILED: str(tmp_path)}, tmp_path / "socket")
    assert environ["PATH"] == f"{tmp_path if has_program else supervise.SHIM}:/bin"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("--watches-file=./watches.yaml --ansible-verbosity 0", Flags(elects_leader=False, reconcile_period=36_000.0)),
        ("--leader-elect --leader-election-id=dljob", Flags(elects_leader=True)),
        ("--enable-leader-election=true --reconcile-period=5m", Flags(elects_leader=True, reconcile_period=300.0)),
        ("--leader-elect=false --leader-elect-lease-duration 3s", Flags(elects_leader=False)),
        ("--reconcile-period 0s", Flags(reconcile_period=0.0)),
    ],
)
def test_the_flags_of_ansible_operator_that_matter(words: str, found: Flags) -> None:
    assert supervise.flags_of(["ansible-operator", "run", *words.split()]) == found


class TestShimOnly:
    """What only ours has to deal with."""

    @pytest.fixture(params=["warm", "compiled"])
    def environ(self, request: pytest.FixtureRequest) -> dict[str, str]:
        found: dict[str, str] = request.getfixturevalue(request.param)
        return found

    @pytest.fixture
    def runs(self, environ: dict[str, str], tmp_path: Path) -> Runs:
        return Runs(tmp_path / "runner", environ, tmp_path)

    def test_an_ordinary_run_is_warm(self, runs: Runs, roles: Path) -> None:
        """Else all of the above would hold, and nothing would be gained."""
        run = runs.run(job("GoodJob"), role=roles / "good")
        assert run.result.ok
        assert "a cold run" not in run.output

    def test_a_role_that_no_entry_names_runs_cold(self, runs: Runs, roles: Path, tmp_path: Path) -> None:
        other = tmp_path / "roles" / "other"
        shutil.copytree(roles / "fails", other)
        run = runs.run(job("FailsJob"), role=other)
        assert "a cold run, watches.yaml does not run" in run.output
        assert run.result.messages == ["no hello"]

    def test_arguments_for_ansible_run_cold(self, runs: Runs, roles: Path) -> None:
        run = runs.run(job("FailsJob"), role=roles / "fails", ansible_args="--extra-vars word=arguments")
        assert "a cold run, --ansible-args" in run.output

    @pytest.mark.parametrize("rotate", [1, 2, 3])
    def test_a_cold_run_keeps_enough_artifacts(
        self, environ: dict[str, str], rotate: int, roles: Path, tmp_path: Path
    ) -> None:
        """With 1 or 2 the real ansible-runner cannot remove the link to the latest run, and fails for ever."""
        runs = Runs(tmp_path / "runner", {**environ, SOCKET: str(tmp_path / "none")}, tmp_path)
        done = [runs.run(job("GoodJob"), role=roles / "good", rotate=rotate) for _ in range(3)]
        assert [(run.code, run.result.ok) for run in done] == [(0, True)] * 3, done[-1].output
        assert all("a cold run" in run.output for run in done)

    def test_without_a_warm_process_runs_are_cold(self, environ: dict[str, str], roles: Path, tmp_path: Path) -> None:
        without = {**environ, SOCKET: str(tmp_path / "none")}
        run = Runs(tmp_path / "runner", without, tmp_path).run(job("FailsJob"), role=roles / "fails")
        assert f"a cold run, {tmp_path / 'none'}: " in run.output
        assert run.result.messages == ["no hello"]

    def test_keys_of_a_spec_do_not_choose_the_operators_connection(self, runs: Runs, roles: Path) -> None:
        spec = {"word": "x", "ansible_connection": "ssh", "ansible_host": "192.0.2.1", "dljob_batch": []}
        run = runs.run(job("FailsJob", spec), role=roles / "fails")
        assert run.result.messages == ["no x"]

    def test_a_role_that_cannot_be_loaded_is_a_failure_that_says_why(self, runs: Runs, roles: Path) -> None:
        run = runs.run(job("BrokenJob"), role=roles / "broken")
        assert len(run.result.messages) == 1
        assert "no.such.action" in run.result.messages[0]

    def test_a_warm_process_that_ends_leaves_a_run_to_be_repeated(
        self, environ: dict[str, str], roles: Path, tmp_path: Path
    ) -> None:
        path = tmp_path / "s"
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
            listening.listen()

            def accept_and_die() -> None:
                connection, _ = listening.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(b"accepted\n")

            thread = threading.Thread(target=accept_and_die)
            thread.start()
            dying = {**environ, SOCKET: str(path)}
            run = Runs(tmp_path / "runner", dying, tmp_path).run(job("GoodJob"), role=roles / "good")
            thread.join()
        assert run.code == 1
        assert run.events == []
        assert "ended during the run" in (run.folder / "artifacts" / run.ident / "stdout").read_text()

    def test_without_another_ansible_runner_the_error_names_the_package(
        self, environ: dict[str, str], tmp_path: Path
    ) -> None:
        shim, programs = environ["PATH"].split(os.pathsep)[0], tmp_path / "bin"
        programs.mkdir()
        (programs / "python3").symlink_to(sys.executable)
        without = {"PATH": f"{shim}:{programs}", "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}
        done = subprocess.run([f"{shim}/ansible-runner", "run"], env=without, capture_output=True, text=True)
        assert done.returncode == 127
        assert done.stderr.startswith("ansible-runner: a cold run, DLJOB_RUNNER_SOCKET is not set\n")
        assert "pip install ansible-runner" in done.stderr
