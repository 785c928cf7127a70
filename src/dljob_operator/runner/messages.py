"""The messages between the engine and the fork server, and their encoding as frames on a stream.

A frame is two lengths (32 bit, network order), a JSON header and an opaque body. The fork server
forwards bodies between the engine and its children without parsing them. The body of a request is lines: the first has
everything but the objects of its snapshot, of which each is a line.
"""

from __future__ import annotations

import enum
import io
import itertools
import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dljob_operator.json_texts import JsonTexts, text_of

_LENGTHS = struct.Struct("!II")
_LARGEST_FRAME = 512 * 1024 * 1024


@dataclass(frozen=True)
class Target:
    """Something to run, with a unique `name`: either the directory of a role or the file of a playbook.

    `batchable` says that the role does nothing for an empty `dljob_batch`, so that the fork server can run it once to
    load everything that it uses. `fixed` are the extra variables of a long-lived worker; other runs get theirs with the
    request.
    """

    name: str
    role: Path | None = None
    playbook: Path | None = None
    batchable: bool = False
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        path = {"role": self.role, "playbook": self.playbook}
        return {
            "name": self.name,
            "batchable": self.batchable,
            "fixed": dict(self.fixed),
            **{key: str(value) for key, value in path.items() if value is not None},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Target:
        role, playbook = data.get("role"), data.get("playbook")
        return cls(
            data["name"],
            Path(role) if role else None,
            Path(playbook) if playbook else None,
            data["batchable"],
            data["fixed"],
        )


@dataclass(frozen=True)
class RunRequest:
    """A run: its extra variables, the names of those that must never be templated, and the owned objects of the jobs.

    `snapshot` is `{job uid: {"Pod": [...], "Service": [...]}}`, or None without a cache; `cluster_info` is described in
    `engine.cluster_info`. `timeout` is in seconds. `facts` says whether to gather facts before a role, which takes a
    second; a playbook decides that itself. A `long_lived` request is for a worker, which uses only its `dljob_batch`.
    `is_contended` says that others have just begun to wait for the API server too: a worker sends fewer writes at once.
    `changes` are the client's counts of users' changes before the engine read the jobs: of all, and of each job whose
    run leaves a worker to the others. Until they grow, a worker may write for longer. None is no count.
    `taken` are the counts of each job at that time: where one has grown, a worker reads the job from the API server
    before it begins to write.
    """

    target: str
    values: Mapping[str, Any]
    unsafe: frozenset[str] = frozenset()
    snapshot: Mapping[str, Any] | None = None
    timeout: float = 300.0
    cluster_info: Mapping[str, Any] | None = None
    facts: bool = False
    long_lived: bool = False
    is_contended: bool = False
    changes: Mapping[str, int] | None = None
    taken: Mapping[str, int] | None = None

    def to_body(self) -> bytes:
        data = {
            "target": self.target,
            "facts": self.facts,
            "values": self.values,
            "unsafe": sorted(self.unsafe),
            "cluster_info": self.cluster_info,
            "is_contended": self.is_contended,
            "changes": self.changes,
            "taken": self.taken,
            "snapshot": _counts(self.snapshot),
        }
        return "\n".join((text_of(data), *_texts(self.snapshot))).encode()

    @classmethod
    def from_body(cls, body: bytes, timeout: float) -> RunRequest:
        """Decode a request. The objects of its snapshot are decoded when they are read, each on its own: as
        dictionaries, those of a large job would take several times the memory, in each worker."""
        lines = (line.decode().rstrip("\n") for line in io.BytesIO(body))
        data = json.loads(next(lines))
        return cls(
            data["target"],
            data["values"],
            frozenset(data["unsafe"]),
            _snapshot(data["snapshot"], lines),
            timeout,
            data["cluster_info"],
            data["facts"],
            is_contended=data["is_contended"],
            changes=data["changes"],
            taken=data["taken"],
        )


def _counts(snapshot: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """How many objects of each kind a snapshot has, in the order of their lines."""
    if snapshot is None:
        return None
    return {uid: {kind: len(objs) for kind, objs in owned.items()} for uid, owned in snapshot.items()}


def _texts(snapshot: Mapping[str, Any] | None) -> Iterator[str]:
    """The objects of a snapshot, a line each. Most are text already, so that a large job does not keep other threads
    waiting for the encoder."""
    for owned in (snapshot or {}).values():
        for objs in owned.values():
            yield from JsonTexts.joined(objs).texts


def _snapshot(counts: Mapping[str, Any] | None, lines: Iterator[str]) -> Mapping[str, Any] | None:
    if counts is None:
        return None
    return {
        uid: {kind: JsonTexts(itertools.islice(lines, count)) for kind, count in kinds.items()}
        for uid, kinds in counts.items()
    }


@dataclass(frozen=True)
class TaskFailure:
    """A failed task that was neither rescued nor ignored. `task` is "" if the run failed outside a task."""

    task: str
    message: str

    def __str__(self) -> str:
        return f"{self.task}: {self.message}" if self.task else self.message


class RunEnding(enum.StrEnum):
    """How a run ended. Only a COMPLETED run reached its last task or a failed task."""

    COMPLETED = "completed"
    TIMED_OUT = "timed out"
    CRASHED = "crashed"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class RunResult:
    """The result of a run.

    `stats` counts tasks (ok, changed, failures, skipped, rescued, ignored); `reports` holds the `dljob`
    value of each task result that had one, in order; `output` is the end of what the run printed; `seconds`
    is its duration. `tasks` has for each task: event (ansible-runner's name), task, action, res (msg, changed
    and others), and for failures ignored and rescued.
    A result that `is_partial` covers some jobs of a batch; the run continues with the others.
    """

    ending: RunEnding
    failures: tuple[TaskFailure, ...] = ()
    stats: Mapping[str, int] = field(default_factory=dict)
    reports: tuple[Mapping[str, Any], ...] = ()
    seconds: float = 0.0
    output: str = ""
    tasks: tuple[Mapping[str, Any], ...] = ()
    is_partial: bool = False

    @property
    def ok(self) -> bool:
        return self.ending is RunEnding.COMPLETED and not self.failures

    @property
    def message(self) -> str:
        """The messages of all failures; "" if there are none."""
        return "\n".join(map(str, self.failures))

    def to_body(self) -> bytes:
        data = {
            "failures": [[failure.task, failure.message] for failure in self.failures],
            "stats": self.stats,
            "reports": self.reports,
            "tasks": self.tasks,
        }
        # A role may return any value. One that JSON cannot encode must not make the result unusable.
        return json.dumps(data, separators=(",", ":"), default=str).encode()

    @classmethod
    def from_body(cls, body: bytes, seconds: float, output: str) -> RunResult:
        data = json.loads(body)
        failures = tuple(TaskFailure(task, message) for task, message in data["failures"])
        reports, tasks = tuple(data["reports"]), tuple(data["tasks"])
        return cls(RunEnding.COMPLETED, failures, data["stats"], reports, seconds, output, tasks)


@dataclass(frozen=True)
class Frame:
    header: Mapping[str, Any]
    body: bytes = b""

    def encode(self) -> bytes:
        header = text_of(self.header).encode()
        return _LENGTHS.pack(len(header), len(self.body)) + header + self.body


class FrameReader:
    """Decodes frames from the chunks of a stream."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield each frame that `data` completes. Raises ValueError if the stream contains something else."""
        self._buffer += data
        while len(self._buffer) >= _LENGTHS.size:
            header_size, body_size = _LENGTHS.unpack_from(self._buffer)
            if header_size + body_size > _LARGEST_FRAME:
                raise ValueError(f"a frame of {header_size + body_size} bytes exceeds the limit of {_LARGEST_FRAME}")
            body_start = _LENGTHS.size + header_size
            end = body_start + body_size
            if len(self._buffer) < end:
                return
            header = json.loads(self._buffer[_LENGTHS.size : body_start])
            yield Frame(header, self._cut(body_start, end))

    def _cut(self, start: int, end: int) -> bytes:
        """Remove everything before `end` and return what is after `start`. Nothing else keeps it: it may be large."""
        with memoryview(self._buffer) as view:
            body = bytes(view[start:end])
        del self._buffer[:end]
        return body
