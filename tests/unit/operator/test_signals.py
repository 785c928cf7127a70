"""Signals to the operator's processes, whichever of their threads the kernel delivers them to. Needs no cluster."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from support.polling import until

from dljob_operator.signals import SignalThread

TIMEOUT = 30.0
ROOT = Path(__file__).resolve().parents[3]


def in_another_thread(function: Callable[[], None]) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def raise_here(number: int) -> None:
    signal.pthread_kill(threading.get_ident(), number)


class TestSignalThread:
    def test_a_signal_to_another_thread_is_handled_while_the_main_thread_waits(self) -> None:
        handled: list[int] = []
        release = threading.Lock()
        release.acquire()
        with SignalThread() as signals:
            signals.start(lambda number: (handled.append(number), release.release()))
            sender = threading.Thread(target=raise_here, args=[signal.SIGTERM])
            sender.start()
            assert release.acquire(timeout=TIMEOUT)
            sender.join()
        assert handled == [signal.SIGTERM]

    def test_what_comes_before_the_start_is_handled_after_it_in_order(self) -> None:
        handled: list[int] = []
        with SignalThread() as signals:
            for number in (signal.SIGINT, signal.SIGTERM):
                in_another_thread(lambda number=number: raise_here(number))
            signals.start(handled.append)
            until(lambda: len(handled) == 2, "both are handled")
        assert handled == [signal.SIGINT, signal.SIGTERM]

    def test_other_signals_are_not_its_own_and_everything_is_put_back(self) -> None:
        handled: list[int] = []
        others: list[int] = []
        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        previous = signal.signal(signal.SIGUSR1, lambda number, _: others.append(number))
        try:
            with SignalThread() as signals:
                signals.start(handled.append)
                signal.raise_signal(signal.SIGUSR1)
                signal.raise_signal(signal.SIGTERM)
                until(lambda: handled, "the signal is handled")
        finally:
            signal.signal(signal.SIGUSR1, previous)
        assert (handled, others) == ([signal.SIGTERM], [signal.SIGUSR1])
        assert {number: signal.getsignal(number) for number in before} == before
        assert signal.set_wakeup_fd(-1) == -1


class Operator:
    """`dljob-operator` as a process, with an API server that refuses every connection."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._log = folder / "log"
        role = folder / "roles" / "nothing" / "tasks"
        role.mkdir(parents=True)
        (role / "main.yml").write_text("[]\n")
        (folder / "watches.yaml").write_text(
            yaml.safe_dump([{"group": "signals.example.com", "version": "v1", "kind": "Job", "role": "nothing"}])
        )
        config = {
            "current-context": "a",
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],
            "users": [{"name": "a", "user": {}}],
        }
        (folder / "kubeconfig").write_text(yaml.safe_dump(config))
        path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])  # it may have the collection
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "dljob_operator", *arguments],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": path, "KUBECONFIG": str(folder / "kubeconfig")},
                stdout=log,
                stderr=log,
            )

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def children(self) -> list[str]:
        """The command lines of its child processes."""
        pids = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ") for pid in pids]

    def signal_another_thread(self, number: int) -> None:
        """Deliver a signal as the kernel may: to a thread that is not the main one, which has gone to sleep."""
        pid = self.process.pid
        tasks = Path(f"/proc/{pid}/task")
        until(lambda: (tasks / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] == "S", "it sleeps")
        other = next(int(task.name) for task in tasks.iterdir() if int(task.name) != pid)
        assert ctypes.CDLL(None, use_errno=True).tgkill(pid, other, number) == 0


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Operator]]:
    started: list[Operator] = []

    def begin(*arguments: str) -> Operator:
        started.append(Operator(tmp_path, *arguments))
        return started[-1]

    yield begin
    for one in started:
        if one.process.poll() is None:
            subprocess.run(["pkill", "-KILL", "-P", str(one.process.pid)], check=False)
            one.process.kill()
            one.process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_run_ends(start: Callable[..., Operator], number: int) -> None:
    operator = start("run")
    until(lambda: "cannot watch" in operator.log, f"the watches have begun\n{operator.log}")
    operator.signal_another_thread(number)
    assert operator.process.wait(TIMEOUT) == 0, operator.log


def test_serve_passes_it_on_and_ends_with_its_child(start: Callable[..., Operator]) -> None:
    operator = start("serve", "--", "sleep", "600")
    until(lambda: any(child.startswith("sleep 600") for child in operator.children), "the child is up")
    operator.signal_another_thread(signal.SIGTERM)
    assert operator.process.wait(TIMEOUT) == 128 + signal.SIGTERM, operator.log
