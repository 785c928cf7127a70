"""What `dljob-operator serve` watches beside ansible-operator, and how both end."""

from __future__ import annotations

import functools
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from support.fake_kube_api import FakeKubeApi

from dljob_operator import cli, wiring
from dljob_operator import serve as command
from dljob_operator.ansible_operator_bridge.watchdog import Watchdog, WatchdogTimes
from dljob_operator.engine.kube import KubeApi
from dljob_operator.watches import GVK, Watch

SLEEPING = (sys.executable, "-c", "import time; time.sleep(20)")
WATCHES = [Watch(GVK(group, "v1", "MXJob"), role=Path("/roles/echo")) for group in ("a.example.com", "b.example.com")]


class Part:
    """A part of the bridge, with the trouble that a test gives its kind."""

    trouble: ClassVar[dict[str, str]] = {}
    stopped: ClassVar[list[str]] = []

    def __init__(self, *given: Any, **more: Any) -> None: ...

    @property
    def _name(self) -> str:
        return type(self).__name__

    def start(self) -> None: ...

    def stop(self, *grace: float) -> None:
        self.stopped.append(self._name)

    def problem(self) -> str:
        return self.trouble.get(self._name, "")


class RunnerClient(Part): ...


class BridgeController(Part): ...


class ShimServer(Part): ...


class Signals:
    """Stands for SignalThread; `begun` is set when the child runs."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.send: Callable[[int], object] = lambda number: None

    def start(self, handle: Callable[[int], object]) -> None:
        self.send = handle
        self.begun.set()


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> Iterator[Signals]:
    monkeypatch.setattr(Part, "trouble", {})
    monkeypatch.setattr(Part, "stopped", [])
    for fake in (BridgeController, ShimServer):
        monkeypatch.setattr(command, fake.__name__, fake)
    monkeypatch.setattr(wiring, "RunnerClient", RunnerClient)
    monkeypatch.setattr(wiring, "load_watches", lambda *_: WATCHES)
    monkeypatch.setattr(command.split, "write_without", lambda *_: None)
    monkeypatch.setattr(command.split, "with_watches_file", lambda command, path: command)
    monkeypatch.setattr(KubeApi, "connect", lambda kubeconfig: FakeKubeApi())
    monkeypatch.setattr(command, "Watchdog", functools.partial(Watchdog, times=WatchdogTimes(0.005, 3, 10.0, 10.0)))
    return Signals()


def serve(signals: Signals) -> int:
    return command.serve(signals, cli.parse(["serve", "--", *SLEEPING]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("variable", "text"), [("DLJOB_PROGRESS", "on"), ("DLJOB_HISTORY_DATABASE", "postgresql://u:geheim@h/d")]
)
def test_it_takes_no_reports_of_progress_and_keeps_no_history(
    signals: Signals, monkeypatch: pytest.MonkeyPatch, variable: str, text: str
) -> None:
    monkeypatch.setenv(variable, text)
    said = f"{variable}: only the embedded engine .* set DLJOB_ENGINE=dljob-operator"
    with pytest.raises(ValueError, match=said) as refused:
        serve(signals)
    assert "geheim" not in str(refused.value)
    assert not signals.begun.is_set()


@pytest.mark.parametrize("part", ["RunnerClient", "BridgeController", "ShimServer"])
def test_a_part_that_no_longer_works_ends_both_processes(
    signals: Signals, part: str, caplog: pytest.LogCaptureFixture
) -> None:
    Part.trouble[part] = f"the {part} is stuck"
    with caplog.at_level(logging.ERROR), pytest.raises(command.BridgeStuck, match=f"the {part} is stuck"):
        serve(signals)
    assert "the bridge no longer works; ending ansible-operator" in caplog.text
    assert Part.stopped == ["ShimServer", "BridgeController"]


def test_the_exit_code_is_that_of_an_error(
    signals: Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """ansible-operator ends with 0 when it is asked to."""
    monkeypatch.setattr(command, "run", lambda options: command.serve(signals, options))  # type: ignore[arg-type]
    Part.trouble["BridgeController"] = "the watch of pods has ended"
    assert cli.main(["serve", "--", *SLEEPING]) == 1
    assert capsys.readouterr().err == "dljob-operator: the watch of pods has ended\n"


def test_a_bridge_that_works_ends_nothing(signals: Signals) -> None:
    def stop() -> None:
        assert signals.begun.wait(10)
        threading.Event().wait(0.1)  # many checks
        signals.send(15)

    threading.Thread(target=stop, daemon=True).start()
    assert serve(signals) == 128 + 15
