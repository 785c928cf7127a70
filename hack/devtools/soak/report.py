"""SOAK.md and docs/soak.svg from the data of a run. Pure, apart from the plot's file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import plots

from devtools.soak.samples import LOAD, QUEUE, SECONDS, Row, window

TARGET = 0.05
TAIL_TARGET = 0.5
"""For the p99 of a latency, the tenth highest of 1,000: its ratio has differed from that of the p50 by up to 30 %."""
STEADY = 1.5
"""How many times as high the load average may be in one window as in the other, if their latencies are compared."""
POINTS = 150
"""Most points of a curve: more are not seen at the plot's size, and the collection carries the file."""


def document(rows: Sequence[Row], summary: Mapping[str, Any], facts: Mapping[str, str]) -> str:
    """SOAK.md. ``summary`` has what cli.summary returns."""
    jobs, size = summary["jobs"], window(summary["jobs"])
    lives = ", ".join(f"{count:,} {life}" for life, count in sorted(summary["lives"].items()))
    lines = [
        "# Many jobs through one process",
        "",
        f"Written by `make soak`: {jobs:,} jobs of one to three pods, of every kind and version, one after the other",
        f"through one operator process, at most {summary['in_flight']} at a time and as fast as this machine does it:",
        f"{summary['rate']:.1f} jobs a second for {summary['seconds'] / 60:.0f} minutes. By way of life: {lives}.",
        "Half of those whose spec has a `runPolicy` were deleted by `ttlSecondsAfterFinished: 0`, the others by the",
        "harness.",
        "",
        *(f"- {key}: {value}" for key, value in facts.items() if key != "peers"),
        f"- jobs that ended otherwise than they should: {len(summary['wrong'])}",
        f"- failures of the probes: {len(summary['problems'])}",
        f"- errors in the operator's log: {len(summary['logged'])}",
        *([f"- stopped early: {summary['stopped']}"] if summary["stopped"] else ()),
        f"- {comparison(rows)}",
        "",
        f"The first column is the median from job {size:,} to job {2 * size:,}, the second that of the last {size:,}.",
        "After each of them some jobs ran one by one, and at last some with this process in turn with a new one on the",
        "same cluster: of the last row the first column is the new one, and the ratio what the operator's age costs.",
        "",
        "| | after the first jobs | at the end | ratio |",
        "| --- | --- | --- | --- |",
        *(_line(row) for row in rows),
        "",
        "![memory, descriptors and latency by number of jobs](../docs/soak.svg)",
        "",
    ]
    return "\n".join(lines)


def _line(row: Row) -> str:
    unit = f" {row.unit}" if row.unit else ""
    shown = ".3f" if row.unit == SECONDS else ".1f" if row.unit else "g"
    return f"| {row.name} | {row.first:{shown}}{unit} | {row.last:{shown}}{unit} | {row.ratio:.2f} |"


def grown(rows: Sequence[Row]) -> list[str]:
    """The names of the quantities that have grown by more than their limit; without latencies that do not compare."""
    steady = is_steady(rows)
    return [
        row.name
        for row in rows
        if row.name not in (QUEUE, LOAD) and (steady or row.unit != SECONDS) and row.ratio > 1 + _limit(row)
    ]


def _limit(row: Row) -> float:
    return TAIL_TARGET if row.unit == SECONDS and row.name.endswith("p99") else TARGET


def is_steady(rows: Sequence[Row]) -> bool:
    """Whether the machine was about as busy in both windows, so that their latencies can be compared."""
    load = _load(rows)
    return load is not None and 1 / STEADY <= load.ratio <= STEADY


def _load(rows: Sequence[Row]) -> Row | None:
    return next((row for row in rows if row.name == LOAD), None)


def comparison(rows: Sequence[Row]) -> str:
    """Whether the latencies of the windows are compared, and why."""
    load = _load(rows)
    if load is None:
        return "**the latencies are not comparable**: the load average was not recorded"
    about = f"the load average was {load.first:.2f} after the first jobs and {load.last:.2f} at the end"
    if is_steady(rows):
        return f"limits of growth: {TARGET:.0%}, and {TAIL_TARGET:.0%} for a p99; {about}"
    return f"**the latencies are not comparable**: {about}, more than {STEADY:g} times as high in one as in the other"


def thinned(values: Sequence[float]) -> Sequence[float]:
    """At most POINTS of the values, at equal distances."""
    return values[:: -(-len(values) // POINTS) or 1]


def draw(series: Mapping[str, Any], path: Path) -> None:
    """docs/soak.svg."""

    def line(name: str, label: str = "", x: str = "jobs") -> plots.Line:
        # an earlier run's data lack what was not recorded then
        return plots.Line(thinned(series[x] if name in series else ()), thinned(series.get(name, ())), label)

    panels = (
        plots.Panel("memory, MiB", (line("pss", "all processes"), line("main", "first process"))),
        plots.Panel("descriptors and threads", (line("descriptors", "descriptors"), line("threads", "threads"))),
        plots.Panel("processes and load", (line("processes", "processes"), line("load", "load average"))),
        plots.Panel("jobs in the queue", (line("queue"),)),
        plots.Panel(
            "latency, ms",
            (
                line("first_pod", "first pod, p50", "marks"),
                line("first_pod_p99", "first pod, p99", "marks"),
                line("ended", "Succeeded, p50", "marks"),
            ),
        ),
    )
    plots.draw(panels, "jobs done", path, marker="")
