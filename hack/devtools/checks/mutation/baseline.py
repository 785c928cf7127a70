"""Which tests execute a line, and how long each takes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from devtools.checks.mutation.mutants import Mutant


@dataclasses.dataclass
class Baseline:
    """What the tests execute and the processor time of each (seconds), without any change."""

    duration: dict[str, float]
    lines: dict[str, dict[int, list[str]]]
    """By module and line the tests; "" stands for imports and the collection."""
    failed: list[str]

    def tests(self, mutant: Mutant, budget: float) -> list[str]:
        """The tests that execute the mutant's statement: those of the module's own file first, then the fastest.

        The others end where all together would take more than ``budget`` seconds of processor time.
        """
        lines = self.lines.get(mutant.module, {})
        found = self._contexts(mutant) - {""}
        if not found and self.at_import(mutant):  # a constant: whatever executes any line of the module
            found = {test for tests in lines.values() for test in tests} - {""}
        stem = Path(mutant.module).stem
        ranked = sorted((f"test_{stem}." not in test, self.duration[test], test) for test in found & set(self.duration))
        chosen, total = [], 0.0
        for is_foreign, seconds, test in ranked:
            total += seconds
            if is_foreign and total > budget:
                break
            chosen.append(test)
        return chosen

    def at_import(self, mutant: Mutant) -> bool:
        return "" in self._contexts(mutant)

    def _contexts(self, mutant: Mutant) -> set[str]:
        lines = self.lines.get(mutant.module, {})
        return {test for line in range(mutant.first, mutant.last + 1) for test in lines.get(line, ())}


def write(path: Path, baseline: Baseline) -> None:
    path.write_text(json.dumps(dataclasses.asdict(baseline)), encoding="utf-8")


def read(path: Path) -> Baseline:
    found = json.loads(path.read_text(encoding="utf-8"))
    lines = {module: {int(line): tests for line, tests in of.items()} for module, of in found["lines"].items()}
    return Baseline(found["duration"], lines, found["failed"])
