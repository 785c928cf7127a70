"""How the workers of a Caffe2 job find one another: through a Redis server, or a directory that they all share.

Caffe2's Gloo wants a store in which every process leaves its address. The last wheels of Caffe2 have only one, a
directory (FileStoreHandler); the one for Redis is not compiled in. So where the workers share no directory, each
gives Gloo a directory of its own, and a thread keeps these alike by way of Redis (:class:`Mirror`).

Addresses outlive their process, and a worker that the kubelet starts again has the job's same run id. So first the
workers that are there now agree on a name for this attempt (:func:`agree`), which nobody has used before. At the end
they wait for one another again (:func:`part`).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

POLL_SECONDS = 0.1
LOG_SECONDS = 10.0
KEPT_SECONDS = 86_400
"""How long Redis keeps what the last worker of a job left."""


class Board:
    """Small named values that all workers see."""

    def put(self, name: str, value: bytes) -> None:
        """Leave ``value``; whoever reads sees all of it or nothing."""
        raise NotImplementedError

    def read(self) -> Mapping[str, bytes]:
        """All that was left so far."""
        raise NotImplementedError


class DirectoryBoard(Board):
    """A file each, in a directory that all workers have mounted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def put(self, name: str, value: bytes) -> None:
        write_whole(self._folder / name, value)

    def read(self) -> Mapping[str, bytes]:
        return read_files(self._folder)


class RedisBoard(Board):
    """A hash on a Redis server."""

    def __init__(self, client: Any, key: str) -> None:
        self._client = client
        self._key = key

    def put(self, name: str, value: bytes) -> None:
        self._client.hset(self._key, name, value)
        self._client.expire(self._key, KEPT_SECONDS)

    def read(self) -> Mapping[str, bytes]:
        return {name.decode(): value for name, value in self._client.hgetall(self._key).items()}


def write_whole(path: Path, value: bytes) -> None:
    """Write a file that appears under its name only when it is complete."""
    handle, partial = tempfile.mkstemp(prefix=".", dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(value)
    Path(partial).replace(path)


def read_files(folder: Path) -> dict[str, bytes]:
    """The complete files of a folder, by name."""
    found = {}
    for path in folder.iterdir():
        if not path.name.startswith("."):
            with contextlib.suppress(FileNotFoundError):  # replaced or removed while this looked
                found[path.name] = path.read_bytes()
    return found


def agree(
    board: Board,
    shard: int,
    shards: int,
    timeout: float,
    say: Callable[[str], None],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Wait for all ``shards`` workers and return the name of this attempt, the same for all of them and for no other.

    Every worker leaves a token, and then says which tokens it sees. The attempt is on when all have said the same:
    what a dead worker left is seen, but nobody answers for it. Neither a hash in Redis nor a shared directory can be
    waited on, so this asks ten times a second. Raises TimeoutError with who is missing.
    """
    start = said_at = clock()
    token = uuid.uuid4().hex
    board.put(f"token-{shard}", token.encode())
    vote = ""
    while True:
        held = board.read()
        tokens = [held.get(f"token-{i}") for i in range(shards)]
        if all(tokens):
            attempt = hashlib.sha256(b"/".join(t for t in tokens if t)).hexdigest()[:16]
            if attempt != vote:
                vote = attempt
                board.put(f"vote-{shard}", vote.encode())
            elif all(held.get(f"vote-{i}") == vote.encode() for i in range(shards)):
                return vote
        others = (i for i in range(shards) if i != shard)
        missing = [i for i in others if not (vote and held.get(f"vote-{i}") == vote.encode())]
        now = clock()
        if now - start >= timeout:
            raise TimeoutError(f"gave up after {now - start:.0f} s: no sign of the workers {missing}")
        if now - said_at >= LOG_SECONDS:
            say(f"waiting for the workers {missing}")
            said_at = now
        sleep(POLL_SECONDS)


def part(
    board: Board,
    attempt: str,
    shard: int,
    shards: int,
    timeout: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until all ``shards`` workers of the attempt are at their end.

    Gloo has no end of its own: a worker whose last sum is complete may exit while another one still receives it, and
    that one then fails with "Connection closed by peer". Raises TimeoutError with who is missing.
    """
    start = clock()
    board.put(f"end-{attempt}-{shard}", b"")
    while True:
        held = board.read()
        missing = [i for i in range(shards) if f"end-{attempt}-{i}" not in held]
        if not missing:
            return
        if clock() - start >= timeout:
            raise TimeoutError(f"gave up after {clock() - start:.0f} s: the workers {missing} have not ended")
        sleep(POLL_SECONDS)


class Mirror:
    """Keeps ``folder``, this process' own, like the board: a thread carries what is new in either to the other.

    A context manager; on leaving it the thread ends, and an error that it met is raised.
    """

    def __init__(self, board: Board, folder: Path, poll: float = POLL_SECONDS / 2) -> None:
        self._board = board
        self._folder = folder
        self._poll = poll
        self._done = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="mirror", daemon=True)
        folder.mkdir(parents=True, exist_ok=True)

    def exchange(self) -> None:
        """Carry over once, in both directions. A name is written once in its life, so nothing is ever newer."""
        ours, theirs = read_files(self._folder), self._board.read()
        for name in ours.keys() - theirs.keys():
            self._board.put(name, ours[name])
        for name in theirs.keys() - ours.keys():
            write_whole(self._folder / name, theirs[name])

    def _run(self) -> None:
        try:
            while not self._done.wait(self._poll):
                self.exchange()
        except BaseException as error:
            self._error = error

    def __enter__(self) -> Mirror:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._done.set()
        self._thread.join()
        if self._error is not None:
            raise RuntimeError(f"the workers' addresses could not be exchanged: {self._error}") from self._error
