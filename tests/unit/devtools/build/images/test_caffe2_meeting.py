"""The rendezvous of Caffe2's workers, over a directory and over a fake Redis."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support import example_programs

meeting = example_programs.load("caffe2/meeting.py")


class Hashes:
    """The methods of a Redis client that a board calls."""

    def __init__(self) -> None:
        self.owned_objects: dict[str, dict[bytes, bytes]] = {}
        self.kept: dict[str, int] = {}

    def hset(self, key: str, name: str, value: bytes) -> None:
        self.owned_objects.setdefault(key, {})[name.encode()] = value

    def hgetall(self, key: str) -> dict[bytes, bytes]:
        return dict(self.owned_objects.get(key, {}))

    def expire(self, key: str, seconds: int) -> None:
        self.kept[key] = seconds


@pytest.fixture(params=["directory", "redis"])
def board(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Any]:
    """A factory of views on one board, one per worker."""
    client = Hashes()
    if request.param == "redis":
        return lambda: meeting.RedisBoard(client, "caffe2:run")
    return lambda: meeting.DirectoryBoard(tmp_path / "run" / "workers")


def agree(board: Any, shard: int, shards: int = 2, timeout: float = 10) -> str:
    return str(meeting.agree(board, shard, shards, timeout, lambda text: None))


def test_what_is_left_can_be_read(board: Callable[[], Any]) -> None:
    board().put("a", b"\x00\xff")
    board().put("a", b"again")
    board().put("b", b"")
    assert board().read() == {"a": b"again", "b": b""}


def test_redis_forgets_a_job_one_day() -> None:
    client = Hashes()
    meeting.RedisBoard(client, "caffe2:run").put("a", b"1")
    assert client.kept == {"caffe2:run": 86_400}


def test_all_workers_come_to_one_name_that_was_never_used(board: Callable[[], Any]) -> None:
    with ThreadPoolExecutor(3) as pool:
        first, second = ({*pool.map(lambda shard: agree(board(), shard, 3), range(3))} for _ in range(2))
    assert len(first) == len(second) == 1
    assert first != second, "addresses of the first attempt must not be found by the second"


def test_what_a_dead_worker_left_is_no_worker(board: Callable[[], Any]) -> None:
    board().put("token-1", b"dead")
    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(agree, board(), 0)
        # it has read the dead worker's token, and votes for a rendezvous that cannot complete
        until = threading.Event()
        while "vote-0" not in board().read():
            assert not until.wait(0.01)
        assert not waiting.done()
        late = pool.submit(agree, board(), 1)
        assert waiting.result(10) == late.result(10)


def test_who_is_missing_is_said(board: Callable[[], Any]) -> None:
    with pytest.raises(TimeoutError, match=r"no sign of the workers \[0, 2\]"):
        agree(board(), 1, 3, timeout=0.05)


def test_a_long_wait_is_logged(board: Callable[[], Any]) -> None:
    messages: list[str] = []
    now = iter(range(0, 100, 6))
    with pytest.raises(TimeoutError):
        meeting.agree(board(), 0, 2, 20, messages.append, clock=lambda: next(now), sleep=lambda seconds: None)
    assert messages == ["waiting for the workers [1]"]


def test_no_worker_leaves_before_the_last_one_is_at_its_end(board: Callable[[], Any]) -> None:
    board().put("end-earlier-2", b"")
    with ThreadPoolExecutor(2) as pool:
        early = [pool.submit(meeting.part, board(), "now", shard, 3, 10) for shard in range(2)]
        until = threading.Event()
        while not {"end-now-0", "end-now-1"} <= board().read().keys():
            assert not until.wait(0.01)
        assert not any(one.done() for one in early)
        meeting.part(board(), "now", 2, 3, 10)
        assert [one.result(10) for one in early] == [None, None]


def test_a_worker_that_never_ends_is_named(board: Callable[[], Any]) -> None:
    now = iter(range(0, 100, 6))
    with pytest.raises(TimeoutError, match=r"gave up after 30 s: the workers \[1\] have not ended"):
        meeting.part(board(), "now", 0, 2, 20, clock=lambda: next(now), sleep=lambda seconds: None)


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / ".partial").write_bytes(b"half")
    meeting.write_whole(tmp_path / "whole", b"all")
    assert meeting.read_files(tmp_path) == {"whole": b"all"}
    assert sorted(p.name for p in tmp_path.iterdir()) == [".partial", "whole"]


def test_folders_of_two_workers_become_alike(board: Callable[[], Any], tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    with meeting.Mirror(board(), one, poll=0.01), meeting.Mirror(board(), two, poll=0.01):
        meeting.write_whole(one / "rank0", b"here")
        meeting.write_whole(two / "rank1", b"there")
        pause = threading.Event()
        for _ in range(500):
            if meeting.read_files(one) == meeting.read_files(two) == {"rank0": b"here", "rank1": b"there"}:
                return
            pause.wait(0.01)
    raise AssertionError(f"{meeting.read_files(one)} and {meeting.read_files(two)}")


def test_a_server_that_goes_away_is_an_error_and_no_silence(tmp_path: Path) -> None:
    class Gone:
        def read(self) -> dict[str, bytes]:
            raise ConnectionError("connection refused")

    mirror = meeting.Mirror(Gone(), tmp_path, poll=0.001)
    with pytest.raises(RuntimeError, match="could not be exchanged: connection refused"), mirror:
        mirror._thread.join(10)  # noqa: SLF001 - its end, before that of the context
