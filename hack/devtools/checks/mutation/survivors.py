"""The committed list of mutants that survive for a reason, and the score without them."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devtools.checks.mutation.layout import GROUPS

Row = Mapping[str, Any]
CAUGHT = ("killed", "timeout")


@dataclass(frozen=True)
class Survivor:
    """A mutant that no test kills, and why: ``equivalent``, or what a test of it would not be worth."""

    module: str
    before: str
    after: str
    reason: str


def load(path: Path) -> list[Survivor]:
    if not path.is_file():
        return []
    return [Survivor(**entry) for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("survivor", [])]


def unexplained(rows: Iterable[Row], known: Iterable[Survivor]) -> list[Row]:
    """The survivors without a reason."""
    keys = {(k.module, k.before, k.after) for k in known}
    return [r for r in rows if r["state"] not in CAUGHT and change(r) not in keys]


def latest(rows: Sequence[Row], earlier: int) -> list[Row]:
    """The rows without those of the first ``earlier`` whose change the others judge anew."""
    anew = {change(row) for row in rows[earlier:]}
    return [*(row for row in rows[:earlier] if change(row) not in anew), *rows[earlier:]]


def change(row: Row) -> tuple[str, str, str]:
    """What the mutant of ``row`` is, wherever its line is now."""
    return row["module"], row["before"], row["after"]


def table(rows: list[Row], known: list[Survivor], by: str) -> list[str]:
    """Lines of a Markdown table, one row for each group (``by="group"``) or module."""
    open_ = {id(row) for row in unexplained(rows, known)}
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        count = counts.setdefault(_title(row["module"], by), Counter())
        explained = row["state"] not in CAUGHT and id(row) not in open_
        count["explained" if explained else row["state"]] += 1
    lines = [
        "| module | mutants | killed | timeout | explained | survived | untested | score |",
        "| --- | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for name, count in sorted(counts.items()):
        total = sum(count.values())
        score = (count["killed"] + count["timeout"]) / (total - count["explained"] or 1)
        states = " | ".join(str(count[s]) for s in ("killed", "timeout", "explained", "survived", "untested"))
        lines.append(f"| {name} | {total} | {states} | {score:.0%} |")
    return lines


def _title(module: str, by: str) -> str:
    group, folder = next((name, path) for name, path in GROUPS.items() if module.startswith(path + "/"))
    return group if by == "group" else f"`{group}/{module.removeprefix(folder + '/')}`"
