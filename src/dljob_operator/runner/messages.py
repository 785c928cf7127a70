"""What the engine and the warm process say to each other: values, and frames of them on a stream.

A frame is two lengths (32 bit, network order), a JSON header and an opaque body. The body travels from the
engine to the child that runs it, and back, without being parsed on the way.
"""

from __future__ import annotations

import enum
import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_LENGTHS = struct.Struct("!II")
_LARGEST_FRAME = 512 * 1024 * 1024


@dataclass(frozen=True)
class Target:
    """Something to run: a role's directory or a playbook's file, exactly one of them, known by `name`.

    `batchable` says that the role does nothing when it is handed an empty `dljob_batch`, so that it can be
    run once to warm everything that it uses. `fixed` are the extra variables of a run that stays; those of any
    other come with its request.
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
    """One run: extra variables, which of them must never be templated, and what the jobs own.

    `snapshot` is `{job uid: {"Pod": [...], "Service": [...]}}`, or None without a watch; `cluster_info` is what
    is known of the cluster besides, see `engine.cluster_info`. `timeout` is in seconds. `facts` are gathered before a
    role (a playbook says so itself); that takes a second.
    A `long_lived` request is one for a run that stays: of its values only `dljob_batch` counts.
    """

    target: str
    values: Mapping[str, Any]
    unsafe: frozenset[str] = frozenset()
    snapshot: Mapping[str, Any] | None = None
    timeout: float = 300.0
    cluster_info: Mapping[str, Any] | None = None
    facts: bool = False
    long_lived: bool = False

    def to_body(self) -> bytes:
        data = {
            "target": self.target,
            "facts": self.facts,
            "values": self.values,
            "unsafe": sorted(self.unsafe),
            "snapshot": self.snapshot,
            "cluster_info": self.cluster_info,
        }
        return json.dumps(data, separators=(",", ":")).encode()

    @classmethod
    def from_body(cls, body: bytes, timeout: float) -> RunRequest:
        data = json.loads(body)
        return cls(
            data["target"],
            data["values"],
            frozenset(data["unsafe"]),
            data["snapshot"],
            timeout,
            data["cluster_info"],
            data["facts"],
        )


@dataclass(frozen=True)
class Failure:
    """A task that failed for good: neither rescued nor ignored. `task` is "" where no task was reached."""

    task: str
    message: str

    def __str__(self) -> str:
        return f"{self.task}: {self.message}" if self.task else self.message


class RunOutcome(enum.StrEnum):
    """How a run ended. Only a COMPLETED one has reached its last task, or a failure."""

    COMPLETED = "completed"
    TIMED_OUT = "timed out"
    CRASHED = "crashed"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class RunResult:
    """What came of a run.

    `stats` counts tasks (ok, changed, failures, skipped, rescued, ignored); `reports` holds the `dljob`
    value of each task result that had one, in order; `output` is the end of what the run printed; `seconds`
    is its duration. `tasks` tells of each task: event (ansible-runner's word), task, action, res (msg, changed
    and the like), and for failures ignored and rescued.
    A result that `is_partial` says what some jobs of a batch have come to; the run is still at the others.
    """

    ending: RunOutcome
    failures: tuple[Failure, ...] = ()
    stats: Mapping[str, int] = field(default_factory=dict)
    reports: tuple[Mapping[str, Any], ...] = ()
    seconds: float = 0.0
    output: str = ""
    tasks: tuple[Mapping[str, Any], ...] = ()
    is_partial: bool = False

    @property
    def ok(self) -> bool:
        return self.ending is RunOutcome.COMPLETED and not self.failures

    @property
    def message(self) -> str:
        """Why the run is not ok, in one text; "" where it is."""
        return "\n".join(map(str, self.failures))

    def to_body(self) -> bytes:
        data = {
            "failures": [[failure.task, failure.message] for failure in self.failures],
            "stats": self.stats,
            "reports": self.reports,
            "tasks": self.tasks,
        }
        # A role may put anything into its result; what JSON does not know must not cost the verdict.
        return json.dumps(data, separators=(",", ":"), default=str).encode()

    @classmethod
    def from_body(cls, body: bytes, seconds: float, output: str) -> RunResult:
        data = json.loads(body)
        failures = tuple(Failure(task, message) for task, message in data["failures"])
        reports, tasks = tuple(data["reports"]), tuple(data["tasks"])
        return cls(RunOutcome.COMPLETED, failures, data["stats"], reports, seconds, output, tasks)


@dataclass(frozen=True)
class Frame:
    header: Mapping[str, Any]
    body: bytes = b""

    def encode(self) -> bytes:
        header = json.dumps(self.header, separators=(",", ":")).encode()
        return _LENGTHS.pack(len(header), len(self.body)) + header + self.body


class FrameReader:
    """Puts frames together again from the pieces that a stream delivers."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield each frame that `data` completes. Raises ValueError where this is no stream of frames."""
        self._buffer += data
        while len(self._buffer) >= _LENGTHS.size:
            header_size, body_size = _LENGTHS.unpack_from(self._buffer)
            if header_size + body_size > _LARGEST_FRAME:
                raise ValueError(f"a frame of {header_size + body_size} bytes is beyond {_LARGEST_FRAME}")
            body_start = _LENGTHS.size + header_size
            end = body_start + body_size
            if len(self._buffer) < end:
                return
            header = json.loads(self._buffer[_LENGTHS.size : body_start])
            body = bytes(self._buffer[body_start:end])
            del self._buffer[:end]
            yield Frame(header, body)
