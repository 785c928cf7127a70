"""One invocation of a command, as its steps share it."""

from __future__ import annotations

from dataclasses import dataclass

from devtools.testbed.base.progress import Reporter
from devtools.testbed.base.settings import Settings
from devtools.testbed.base.state import State, StateFile


@dataclass
class Session:
    """The settings, the recorded state, and the progress reporter."""

    settings: Settings
    file: StateFile
    state: State
    report: Reporter

    @classmethod
    def open(cls, settings: Settings) -> Session:
        file = StateFile(settings.state_dir)
        return cls(settings, file, file.load(), Reporter(settings.cache_dir / "durations.json"))

    def record(self, **changes: object) -> None:
        self.state = self.file.save(self.state.replace(**changes))
