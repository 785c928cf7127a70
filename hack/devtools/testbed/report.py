"""The parts of the reports: tables in Markdown and CSV. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[object]], rule: str = "---") -> list[str]:
    """The lines of a table in Markdown. ``rule`` aligns its columns: ``--:`` to the right."""
    return [
        f"| {' | '.join(head)} |".replace("|  |", "| |"),
        f"| {rule} " * len(head) + "|",
        *(f"| {' | '.join(map(str, row))} |" for row in rows),
    ]


def as_csv(head: Sequence[str], rows: Iterable[Mapping[str, str]]) -> str:
    """A table as CSV; what a row lacks is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, head, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def listed(facts: Mapping[str, str]) -> list[str]:
    """A line of Markdown for each fact."""
    return [f"- {key}: {value}" for key, value in facts.items()]
