"""A record of what ``up`` starts, written before and after each start, so that ``down`` stops exactly that."""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.process import ProcessId

FORMAT = 1


@dataclass(frozen=True)
class State:
    """The recorded state of one cluster. An empty field means that this tool did not start the component."""

    name: str = ""
    engine: str = ""
    """"user" for a Docker that was there, "own" for one started here, "" for none yet."""
    docker_host: str = ""
    supervisor: ProcessId | None = None
    """The supervisor process of the private engine: when it exits, the kernel kills the engine and its containers."""
    block: str = ""
    """The private engine's address space; the cluster network is its first quarter."""
    node_image: str = ""
    creation: str = ""
    """"begun" before and "done" after ``kind create cluster``; a node without "done" is incomplete, and a node without
    a value was not created by this tool."""
    registry_port: int = 0
    slot: int | None = None
    """The number of the private engine's folder in the cache."""
    kwok: ProcessId | None = None
    kwok_nodes: int = 0

    def replace(self, **changes: Any) -> State:
        return dataclasses.replace(self, **changes)


def to_json(state: State) -> str:
    return json.dumps({"format": FORMAT, **dataclasses.asdict(state)}, indent=2, sort_keys=True) + "\n"


def from_json(text: str) -> State:
    """Raises ValueError if the text is not a state of this format."""
    data = json.loads(text)
    if not isinstance(data, dict) or data.pop("format", None) != FORMAT:
        raise ValueError(f"not a state file of format {FORMAT}")
    unknown = set(data) - {f.name for f in dataclasses.fields(State)}
    if unknown:
        raise ValueError(f"unknown fields: {', '.join(sorted(unknown))}")
    for key in ("supervisor", "kwok"):
        if data.get(key) is not None:
            data[key] = ProcessId(**data[key])
    return State(**data)


class StateFile:
    """Reads and atomically replaces ``state.json``: a partial write must not lose the ids of running processes."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "state.json"

    def load(self) -> State:
        """The recorded state; an empty one if there is no record."""
        try:
            return from_json(self.path.read_text())
        except FileNotFoundError:
            return State()
        except (ValueError, TypeError) as error:
            raise ClusterError(
                f"{self.path} cannot be read: {error}",
                f"restore it, or remove it if no cluster of this folder runs: rm {self.path}",
            ) from error

    def save(self, state: State) -> State:
        temporary = self.path.with_suffix(".new")
        with temporary.open("w") as stream:
            stream.write(to_json(state))
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(self.path)
        return state

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
