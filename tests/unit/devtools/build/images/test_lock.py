"""Two processes that build images at the same time take turns."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from devtools.build.images import build, definition, remote
from devtools.testbed.base.docker import Engine
from devtools.testbed.base.progress import Reporter
from devtools.testbed.base.settings import Settings
from devtools.testbed.cluster import registry

ROOT = Path(__file__).resolve().parents[5]
HOLDER = """
import pathlib, sys
from devtools.testbed.base.progress import Reporter
from devtools.build.images import build
cache = pathlib.Path(sys.argv[1])
with build.alone(cache, Reporter(cache / "durations.json")):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock until it gets a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        env={"PYTHONPATH": str(ROOT / "hack")}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


class Said(io.StringIO):
    """A stream that tells when something is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.something = threading.Event()

    def write(self, text: str) -> int:
        written = super().write(text)
        self.something.set()
        return written


@pytest.mark.parametrize("end", ["it is done", "it is killed"])
def test_the_second_waits_for_the_first_and_says_so(tmp_path: Path, holder: subprocess.Popen[str], end: str) -> None:
    said, done = Said(), threading.Event()

    def second() -> None:
        with build.alone(tmp_path, Reporter(tmp_path / "durations.json", said)):
            done.set()

    thread = threading.Thread(target=second)
    thread.start()
    assert said.something.wait(30) and not done.is_set()
    if end == "it is killed":
        holder.kill()
    else:
        assert holder.stdin is not None
        holder.stdin.write("\n")
        holder.stdin.flush()
    assert done.wait(30)
    thread.join()
    assert said.getvalue() == "  waiting for another process that builds images\n"


def test_what_another_process_has_pushed_meanwhile_is_not_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The registry has the image at the second request, which the lock precedes."""
    image, key = definition.load("shell"), "k1"
    answers = iter(["old", key])
    monkeypatch.setattr(build.context, "key", lambda *_: key)
    monkeypatch.setattr(remote, "content", lambda *_: next(answers))
    monkeypatch.setattr(build, "build", lambda *_: pytest.fail("it was built"))
    monkeypatch.setattr(registry, "push", lambda *_: pytest.fail("it was pushed"))
    settings = Settings(tmp_path / "state", tmp_path / "cache", "test")
    engine = Engine("user", Path("docker"), {})
    reporter = Reporter(tmp_path / "durations.json", io.StringIO())
    names = build._build_and_push_one(image, settings, engine, 5001, [], reporter)  # noqa: SLF001 - without the other images
    assert names == list(image.names)
    assert next(answers, None) is None
