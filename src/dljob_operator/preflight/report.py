"""Writes the verdicts, for people and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TextIO

from ansible_collections.dljob.operator.plugins.module_utils.logic.preflight import Verdict

from dljob_operator.preflight.cluster import Answer


def write_text(answer: Answer, out: TextIO) -> None:
    """Write a line for each job, its problems with their fixes and the notes below it, and a summary."""
    for verdict in answer.verdicts:
        result = f"can be adopted{_objects(verdict)}" if verdict.can_be_adopted else "cannot be adopted"
        print(f"{verdict.namespace}/{verdict.name} {verdict.kind}: {result}", file=out)
        for problem in verdict.problems:
            print(f"  {problem.text}\n    fix: {problem.fix}", file=out)
        for note in verdict.notes:
            print(f"  note: {note}", file=out)
    for problem in answer.definitions:
        print(f"{problem.text}\n    fix: {problem.fix}", file=out)
    adoptable = _adoptable(answer.verdicts)
    total = len(answer.verdicts)
    print(f"{total} running jobs: {adoptable} can be adopted, {total - adoptable} cannot", file=out)


def write_json(answer: Answer, out: TextIO) -> None:
    """Write one object with the same content."""
    document = {
        "jobs": [{**asdict(verdict), "canBeAdopted": verdict.can_be_adopted} for verdict in answer.verdicts],
        "definitions": [asdict(problem) for problem in answer.definitions],
        "adoptable": (adoptable := _adoptable(answer.verdicts)),
        "notAdoptable": len(answer.verdicts) - adoptable,
    }
    json.dump(document, out, indent=2)
    out.write("\n")


def _adoptable(verdicts: Sequence[Verdict]) -> int:
    return sum(verdict.can_be_adopted for verdict in verdicts)


def _objects(verdict: Verdict) -> str:
    kinds = [name.partition("/")[0] for name in verdict.adopts]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    return f" ({counts})" if counts else ""
