"""``dljob history``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from dljob import config
from dljob.account import prices
from dljob.commands.usage import config_map
from dljob.history import VARIABLE, opened, plain, report
from dljob.output import Table, colors_wanted, duration, printable, structured

_HOUR = 3600.0
_COLUMNS = ("NAMESPACE", "NAME", "KIND", "STATE", "ENDED", "RUNNING", "RESTARTS", "GPU-H", "USER", "REASON")
_WIDE = ("CLUSTER", "QUEUE", "REPLICAS", "PREEMPTIONS", "QUEUED", "CPU-H", "GIB-H", "MESSAGE")


def run(given: argparse.Namespace) -> int:
    """Print the jobs that ended last, or the report of a month; returns the exit code."""
    with opened(given.database or os.environ.get(VARIABLE, "")) as (history, filter_):
        named = {name: getattr(given, name) for name in ("user", "kind", "cluster")}
        if given.what == "report":
            return _report(given, history, filter_(namespace=given.namespace or "", **named))
        since = None if given.since is None else datetime.now(UTC) - timedelta(seconds=given.since)
        where = filter_(namespace=_namespace(given), result=given.state, since=since, **named)
        return _list(given, history.newest(given.limit, where))


def _namespace(given: argparse.Namespace) -> str:
    if given.all_namespaces:
        return ""
    return given.namespace or config.load(given.kubeconfig, given.context).namespace


def _list(given: argparse.Namespace, rows: Sequence[Mapping[str, Any]]) -> int:
    if given.output in ("json", "yaml"):
        print(structured([plain(row) for row in rows], given.output))
        return 0
    if not rows:
        print("The history has no such jobs.", file=sys.stderr)
        return 0
    names = [*(_COLUMNS if given.all_namespaces else _COLUMNS[1:]), *(_WIDE if given.output == "wide" else ())]
    now = datetime.now(UTC)
    cells = [_cells(row, now) for row in rows]
    lines = Table(names, colored=colors_wanted(sys.stdout)).lines([[one[name] for name in names] for one in cells])
    print("\n".join(_with_links(lines, rows) if given.output == "wide" else lines))
    return 0


def _with_links(lines: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The links to the logs stay whole."""
    width = max(map(len, lines))
    links = ["LOGS", *(printable(row["log_link"]) for row in rows)]
    return [f"{line.ljust(width)}   {link}".rstrip() for line, link in zip(lines, links, strict=True)]


def _cells(row: Mapping[str, Any], now: datetime) -> dict[str, str]:
    return {
        "NAMESPACE": row["namespace"],
        "NAME": row["name"],
        "KIND": row["kind"],
        "STATE": row["result"],
        "ENDED": f"{duration((now - row['ended']).total_seconds())} ago",
        "RUNNING": duration(row["running_seconds"]),
        "RESTARTS": str(row["restarts"]),
        "GPU-H": f"{row['gpu_seconds'] / _HOUR:.2f}" if row["usage"] else "-",
        "USER": row["user_name"] or "-",
        "REASON": row["reason"] or "-",
        "CLUSTER": row["cluster"] or "-",
        "QUEUE": row["queue"] or "-",
        "REPLICAS": str(row["replicas"]),
        "PREEMPTIONS": str(row["preemptions"]),
        "QUEUED": duration(row["queued_seconds"]),
        "CPU-H": f"{row['cpu_core_seconds'] / _HOUR:.2f}" if row["usage"] else "-",
        "GIB-H": f"{row['memory_gib_seconds'] / _HOUR:.2f}" if row["usage"] else "-",
        "MESSAGE": row["message"],
    }


def _report(given: argparse.Namespace, history: Any, where: Any) -> int:
    now = datetime.now(UTC)
    year, month = given.month or (now.year, now.month)
    asked = resources = None
    if given.prices:
        from dljob.client import Client

        asked = prices(config_map(Client(given.kubeconfig, given.context, given.namespace), given.prices))
        resources = history.resources(year, month, given.by, where)
    lines = report(history.month(year, month, given.by, where), given.by, asked, resources or {})
    if given.output in ("json", "yaml"):
        print(structured(lines, given.output))
    elif not lines:
        print(f"The history has nothing of {year}-{month:02}.", file=sys.stderr)
    else:
        cost = [f"COST{f' ({asked.currency})' if asked.currency else ''}"] if asked else []
        heads = ("JOBS", "SUCCEEDED", "FAILED", "GPU-H", "CPU-H", "GIB-H", "RESTARTS", "PREEMPTIONS", *cost)
        table = Table([*(name.upper() for name in given.by), *heads])
        print("\n".join(table.lines(_line(line, given.by) for line in lines)))
    return 0


def _line(line: Mapping[str, Any], by: Sequence[str]) -> list[str]:
    hours = [f"{line[name]:.2f}" for name in ("gpuHours", "cpuHours", "memoryGibHours")]
    counts = [str(line[name]) for name in ("jobs", "succeeded", "failed")]
    cost = [f"{line['cost']:.2f}"] if "cost" in line else []
    return [
        *(line[name] or "-" for name in by),
        *counts,
        *hours,
        str(line["restarts"]),
        str(line["preemptions"]),
        *cost,
    ]
