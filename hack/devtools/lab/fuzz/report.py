"""The reports of a run, and the folder of its violations."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from devtools.lab.fuzz.judge import Outcome
from devtools.lab.fuzz.run import Memory, Result

_MIB = 2**20
_MOST = 50
"""Violations that a report shows."""


def table(result: Result, seed: int) -> str:
    """The counts as text, for the terminal."""
    lines = [f"seed {seed}, {result.seconds:.0f} s", *_by_kind(result), "", *_about(result)]
    lines += _memory(result)
    lines.append(f"violations: {len(result.violations)}")
    lines += [f"  {one.what}: {one.detail[:200]} ({len(one.cases)} cases)" for one in result.violations[:_MOST]]
    return "\n".join(lines)


def document(result: Result, arguments: str) -> str:
    """FUZZ.md. ``arguments`` are those of the run."""
    lines = [
        "# Generated objects",
        "",
        f'Written by `make fuzz FUZZ="{arguments}"`.',
        "[docs/reliability.md](../docs/reliability.md#the-large-runs) describes such a run.",
        "",
        *(f"- {key}: {value}" for key, value in result.facts.items() if key != "peers"),
        f"- run: {result.sent.total():,} objects in {result.seconds / 60:.0f} minutes",
        *(f"- {line}" for line in _about(result)),
        *([] if result.complete else ["- **incomplete**: the run ended early"]),
        "",
        *_violations(result),
        "",
        *_by_kind(result),
        "",
        "The operator's memory:",
        "",
        *_memory(result),
    ]
    return "\n".join([*lines, ""])


def _violations(result: Result) -> list[str]:
    if not result.violations:
        return ["No violation."]
    shown = [f"- **{one.what}**: {_quoted(one.detail)}" for one in result.violations[:_MOST]]
    return [f"{len(result.violations)} violations:", "", *shown]


def _quoted(text: str) -> str:
    """The text of a generated object, in which anything may occur, on one line as code."""
    return f"`{' '.join(text[:200].replace('`', ' ').split())}`"


def _by_kind(result: Result) -> list[str]:
    """A row for each kind: its number of objects by outcome."""
    columns = ("sent", "refused by the API server", "accepted", *(one.value for one in Outcome))
    rows: list[tuple[str, list[int]]] = []
    for kind in result.sent:
        outcomes: Mapping[str, int] = result.outcomes.get(kind, {})
        counts = (result.sent[kind], result.refused[kind], result.accepted[kind])
        rows.append((kind, [*counts, *(outcomes.get(one.value, 0) for one in Outcome)]))
    rows.append(("all", [sum(counts[index] for _, counts in rows) for index in range(len(columns))]))
    return [
        "| kind | " + " | ".join(columns) + " |",
        "| --- " * (len(columns) + 1) + "|",
        *("| " + " | ".join((kind, *map(str, counts))) + " |" for kind, counts in rows),
    ]


def _about(result: Result) -> list[str]:
    """What else the run did and measured."""
    lines = [
        f"steps of tenants: {_pairs(result.steps)}",
        f"errors of the API server: {result.server_errors.total()}",
        f"slowest answer: {result.slowest_answer:.1f} s",
    ]
    for name, summary in (("undisturbed", result.undisturbed), ("beside the others", result.disturbed)):
        if summary is not None:
            lines.append(
                f"healthy jobs {name}: {summary.jobs}; first pod after {summary.median.first_pod:.3f} s (at most"
                f" {summary.longest.first_pod:.3f}), running after {summary.median.running:.3f} s (at most"
                f" {summary.longest.running:.3f}), {summary.median.report:.3f} s after its pods (at most"
                f" {summary.longest.report:.3f}), creation {summary.median.request:.3f} s (at most"
                f" {summary.longest.request:.3f})"
            )
    return lines


def _memory(result: Result) -> list[str]:
    return [
        "| objects | all processes (PSS) | first process (RSS) |",
        "| --: | --: | --: |",
        *(f"| {one.cases:,} | {one.pss / _MIB:.0f} MiB | {one.first / _MIB:.0f} MiB |" for one in _some(result.memory)),
    ]


def _some(memory: Sequence[Memory]) -> list[Memory]:
    """The first and the last, and up to eight between them."""
    step = max(1, -(-len(memory) // 9))
    return [*memory[:-1:step], *memory[-1:]]


def _pairs(counts: Any) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"


def write(result: Result, seed: int, folder: Path) -> None:
    """``report.json``, and ``violations/NNN.json``, each with the cases that may have caused it."""
    violations = folder / "violations"
    violations.mkdir(parents=True, exist_ok=True)
    for old in violations.glob("*.json"):
        old.unlink()
    for number, one in enumerate(result.violations):
        document = {"what": one.what, "detail": one.detail, "cases": [case.to_json() for case in one.cases]}
        (violations / f"{number:03d}.json").write_text(json.dumps(document, indent=1))
    summary = {
        "seed": seed,
        **{
            name: asdict(value) if name in ("undisturbed", "disturbed") and value is not None else value
            for name, value in vars(result).items()
            if name != "violations"
        },
        "violations": [{"what": one.what, "detail": one.detail} for one in result.violations],
    }
    (folder / "report.json").write_text(json.dumps(summary, indent=1))
