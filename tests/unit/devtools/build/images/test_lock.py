"""Two processes that build images at the same time take turns."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from devtools.build.images import build, definition, lock, remote
from devtools.build.images.errors import ImagesError
from devtools.testbed.base.docker import Engine
from devtools.testbed.base.progress import Reporter
from devtools.testbed.base.settings import Settings
from devtools.testbed.cluster import registry

ROOT = Path(__file__).resolve().parents[5]
HOLDER = """
import pathlib, sys
from devtools.testbed.base.progress import Reporter
from devtools.build.images import lock
cache = pathlib.Path(sys.argv[1])
for image in sys.argv[2:]:
    with lock.exclusive(cache, image, Reporter(cache / "durations.json")):
        print(image, flush=True)
        sys.stdin.readline()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a process that holds the lock for each image until it gets a line."""
    started: list[subprocess.Popen[str]] = []

    def start(*images: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(tmp_path), *images],
            env={"PYTHONPATH": str(ROOT / "hack")}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == f"{images[0]}\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def report(folder: Path) -> Reporter:
    return Reporter(folder / "durations.json", io.StringIO())


def output(reporter: Reporter) -> str:
    assert isinstance(reporter.stream, io.StringIO)
    return reporter.stream.getvalue()


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_the_second_waits_and_names_the_first(tmp_path: Path, holder: Callable[..., subprocess.Popen[str]]) -> None:
    first = holder("mxnet")
    reporter, done = report(tmp_path), threading.Event()

    def second() -> None:
        with lock.exclusive(tmp_path, "caffe2", reporter):
            done.set()

    thread = threading.Thread(target=second)
    thread.start()
    assert not done.wait(2 * lock.INTERVAL)
    go_on(first)
    assert done.wait(30)
    thread.join()
    assert output(reporter) == f"  waiting for process {first.pid} with the image mxnet\n"


def test_a_process_that_makes_no_progress_is_an_error_with_its_fix(
    tmp_path: Path, holder: Callable[..., subprocess.Popen[str]]
) -> None:
    first = holder("mxnet")
    with pytest.raises(ImagesError, match=rf"process {first.pid} with the image mxnet has held") as failed:  # noqa: SIM117
        with lock.exclusive(tmp_path, "caffe2", report(tmp_path), stalled=0.1):
            pytest.fail("the lock was free")
    assert "end that process" in failed.value.fix


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path, holder: Callable[..., subprocess.Popen[str]]) -> None:
    first = holder("mxnet")
    first.kill()
    first.wait()
    with lock.exclusive(tmp_path, "caffe2", report(tmp_path), stalled=0.1):
        pass


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
    names = build._build_and_push_one(image, settings, engine, 5001, [], report(tmp_path))
    assert names == list(image.names)
    assert next(answers, None) is None
