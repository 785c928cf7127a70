"""The reports of a run, and the folder of its violations."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from devtools.lab.fuzz.judge import Outcome
from devtools.lab.fuzz.run import Memory, Result
from devtools.testbed import report

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
        *report.listed(result.facts),
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
    head = ("kind", "sent", "refused by the API server", "accepted", *(one.value for one in Outcome))
    counters = [result.sent, result.refused, result.accepted]
    counters += [Counter({kind: found[one.value] for kind, found in result.outcomes.items()}) for one in Outcome]
    rows = [[kind, *(counter[kind] for counter in counters)] for kind in result.sent]
    return report.table(head, [*rows, ["all", *(counter.total() for counter in counters)]])


def _about(result: Result) -> list[str]:
    """What else the run did and measured."""
    lines = [
        f"steps of tenants: {_pairs(result.steps)}",
        f"errors of the API server: {result.server_errors.total()}",
        f"slowest answer: {result.slowest_answer:.1f} s",
    ]
    for name, summary in (("undisturbed", result.undisturbed), ("beside the others", result.disturbed)):
        if summary is not None:
            usual, most = summary.median, summary.longest
            lines.append(
                f"healthy jobs {name}: {summary.jobs};"
                f" first pod after {usual.first_pod:.3f} s (at most {most.first_pod:.3f}),"
                f" running after {usual.running:.3f} s (at most {most.running:.3f}),"
                f" {usual.report:.3f} s after its pods (at most {most.report:.3f}),"
                f" creation {usual.request:.3f} s (at most {most.request:.3f})"
            )
    return lines


def _memory(result: Result) -> list[str]:
    rows = [
        (f"{one.cases:,}", f"{one.pss / _MIB:.0f} MiB", f"{one.first / _MIB:.0f} MiB") for one in _some(result.memory)
    ]
    return report.table(("objects", "all processes (PSS)", "first process (RSS)"), rows, "--:")


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
    times = {
        name: None if one is None else asdict(one)
        for name, one in (("undisturbed", result.undisturbed), ("disturbed", result.disturbed))
    }
    found = [{"what": one.what, "detail": one.detail} for one in result.violations]
    (folder / "report.json").write_text(
        json.dumps({"seed": seed, **vars(result), **times, "violations": found}, indent=1)
    )
