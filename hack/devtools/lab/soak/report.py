"""SOAK.md and docs/soak.svg from the data of a run. Pure, apart from the plot's file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from devtools.lab.bench import plots
from devtools.lab.soak.samples import SECONDS, Row, window
from devtools.testbed.report import listed, table

POINTS = 150
"""Most points of a curve: more are not seen at the plot's size, and the collection carries the file."""


def document(rows: Sequence[Row], in_turn: Sequence[Row], summary: Mapping[str, Any], facts: Mapping[str, str]) -> str:
    """SOAK.md: the ``rows`` of the run, and those of both processes ``in_turn``. ``summary`` is as cli writes it."""
    jobs, size = summary["jobs"], window(summary["jobs"])
    lives = ", ".join(f"{count:,} {life}" for life, count in sorted(summary["lives"].items()))
    lines = [
        "# Many jobs through one process",
        "",
        f"Written by `make soak`: {jobs:,} jobs of one to three pods, of every kind and version but MPIJob of v2beta1,",
        "whose launchers Kubernetes' Job controller starts at its own pace. They ran one after the other",
        f"through one operator process, at most {summary['in_flight']} at a time and as fast as this machine does it:",
        f"{summary['rate']:.1f} jobs a second for {summary['seconds'] / 60:.0f} minutes. By way of life: {lives}.",
        "Half of those whose spec has a `runPolicy` were deleted by `ttlSecondsAfterFinished: 0`, the others by the",
        "harness.",
        "",
        *listed(facts),
        f"- jobs that ended otherwise than they should: {len(summary['wrong'])}",
        f"- failures of the probes: {len(summary['problems'])}",
        f"- errors in the operator's log: {len(summary['logged'])}",
        *([f"- stopped early: {summary['stopped']}"] if summary["stopped"] else ()),
        "",
        f"The first column is the median from job {size:,} to job {2 * size:,}, the second that of the last {size:,}.",
        "After each of them some jobs ran one by one. The latencies also show how much faster the machine was at one",
        "time than at the other.",
        "",
        *_table("after the first jobs", "at the end", rows),
        "",
        f"At the end this process ran in turn with a young one, which had run {size:,} jobs before, each in its own",
        "namespace of the same cluster: many jobs in eight turns each, then some one by one. The ratio is what the age",
        "of the operator costs; in parentheses is the interval of 95 % that follows from how much the jobs differ.",
        "",
        *(_table("the young process", "this process", in_turn) if in_turn else ["It stopped before."]),
        "",
        "![memory, descriptors and latency by number of jobs](../docs/soak.svg)",
        "",
    ]
    return "\n".join(lines)


def _table(first: str, last: str, rows: Sequence[Row]) -> list[str]:
    return table(("", first, last, "ratio", "limit"), map(_cells, rows))


def _cells(row: Row) -> tuple[str, ...]:
    unit = f" {row.unit}" if row.unit else ""
    shown = ".3f" if row.unit == SECONDS else ".1f" if row.unit else "g"
    limit = "" if row.limit is None else f"{1 + row.limit:.2f}"
    ratio = f"**{row.ratio:.2f}**" if row.has_grown else f"{row.ratio:.2f}"
    if row.interval is not None:
        ratio += " ({:.2f} to {:.2f})".format(*row.interval)
    return row.name, f"{row.first:{shown}}{unit}", f"{row.last:{shown}}{unit}", ratio, limit


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
