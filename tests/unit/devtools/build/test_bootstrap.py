"""Which program installs the packages, with stand-ins for uv and pip."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from devtools.build import bootstrap as install
from devtools.paths import ROOT


class Programs:
    """Records the commands; ``fails`` decides which of them fail."""

    def __init__(self, *fails: str) -> None:
        self.fails = fails
        self.ran: list[str] = []
        self.environments: list[Mapping[str, str]] = []

    def __call__(
        self, command: Sequence[str], env: Mapping[str, str] | None = None, **_: Any
    ) -> subprocess.CompletedProcess[str]:
        text = " ".join(map(str, command))
        self.ran.append(text)
        self.environments.append(env or {})
        if "--target" in command and not self._failing(text):
            uv = Path(command[list(command).index("--target") + 1]) / "bin" / "uv"
            uv.parent.mkdir(parents=True)
            uv.touch()
        listing = "global.index-url='https://mirror.example/simple'\n" if "config list" in text else ""
        return subprocess.CompletedProcess(command, int(self._failing(text)), listing, "no such package")

    def _failing(self, text: str) -> bool:
        """An option has to be a whole word of the command, another word only a part of it."""
        words = text.split()
        return any(
            all(word in (words if word.startswith("-") else text) for word in fails.split()) for fails in self.fails
        )

    def of(self, name: str) -> list[str]:
        return [command for command in self.ran if f"{name} install" in command]


def started(monkeypatch: pytest.MonkeyPatch, cache: Path, *fails: str) -> tuple[int, Programs]:
    programs = Programs(*fails)
    monkeypatch.setattr(subprocess, "run", programs)
    return install.main({"DLJOB_CACHE": str(cache)}), programs


def test_it_needs_no_package() -> None:
    """-S: without site-packages, as in an environment that was just created."""
    command = [sys.executable, "-S", "-c", "import devtools.build.bootstrap"]
    done = subprocess.run(command, env={"PYTHONPATH": str(ROOT / "hack")}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_uv_is_pinned_once() -> None:
    assert install.pinned(install.REQUIREMENTS.read_text(encoding="utf-8")).count(".") == 2
    with pytest.raises(install.NoUv, match="no line uv=="):
        install.pinned("pytest==1\n")


def test_a_warm_cache_needs_no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started(monkeypatch, tmp_path)
    status, again = started(monkeypatch, tmp_path)
    assert status == 0
    commands = again.of("bin/uv pip")
    assert len(commands) == 2 and all("--offline" in command for command in commands)
    assert again.of("-m pip") == [], "uv itself is in the cache"


def test_a_cold_cache_uses_pips_index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    status, programs = started(monkeypatch, tmp_path, "--offline -r")
    assert status == 0
    (online,) = [command for command in programs.of("bin/uv pip") if "--offline" not in command]
    assert "requirements-dev.txt" in online
    assert programs.environments[programs.ran.index(online)]["UV_DEFAULT_INDEX"] == "https://mirror.example/simple"


@pytest.mark.parametrize(
    ("fails", "reason"), [("-m pip --target", "cannot install uv=="), ("bin/uv -r", "uv failed, see above")]
)
def test_pip_replaces_a_uv_that_does_not_work(
    fails: str, reason: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, programs = started(monkeypatch, tmp_path, fails)
    assert status == 0
    first, second = (command for command in programs.of("-m pip") if "--target" not in command)
    assert "requirements-dev.txt" in first and "--editable" in second
    assert reason in capsys.readouterr().err


def test_the_status_is_pips_if_both_fail(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    status, _ = started(monkeypatch, tmp_path, "install -r")
    assert status == 1
