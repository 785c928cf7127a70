"""``dljob usage``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from dljob.account import CPU, MEMORY, PHASES, Account, Prices, prices
from dljob.client import Client
from dljob.errors import Refused
from dljob.kinds import Resource
from dljob.output import Table, duration, structured
from dljob.usage import GROUPS
from dljob.view import JobView, is_gpu

_JOB = ("namespace", "name", "state")
_Row = tuple[tuple[str, ...], Account]


def run(given: argparse.Namespace, client: Client) -> tuple[int, Sequence[str]]:
    """Print the table; returns the exit code, and what could not be read."""
    asked = prices(config_map(client, given.prices)) if given.prices else None
    found = client.list(given.kind, all_namespaces=given.all_namespaces, selector=given.selector)
    names, rows = _rows(list(found), given.by)
    rows.sort(key=lambda row: (-row[1].of(is_gpu), -row[1].of(lambda name: name == CPU), row[0]))
    if given.output:
        data = [{**dict(zip(names, key, strict=True)), **plain(account, asked)} for key, account in rows]
        print(structured(data, given.output))
    elif not rows:
        print("No operator keeps an account of such jobs: it needs the option --usage on.", file=sys.stderr)
    else:
        shown = names if given.by or given.all_namespaces else names[1:]
        kept = [(key[len(names) - len(shown) :], account) for key, account in rows]
        print("\n".join(_lines(shown, kept, asked, grouped_=bool(given.by))))
    left = sum(job.account is None for job in found)
    without = [f"Left out, since no operator with --usage on keeps an account of them: {left} jobs."]
    return 0, (*found.problems, *(without if rows and left else ()))


def _rows(jobs: Iterable[JobView], by: Sequence[str]) -> tuple[Sequence[str], list[_Row]]:
    if by:
        sums: dict[tuple[str, ...], Account] = {}
        for job in jobs:
            if job.account is not None:
                group = tuple(GROUPS[name](job) for name in by)
                sums[group] = sums[group] + job.account if group in sums else job.account
        return by, list(sums.items())
    return _JOB, [((job.namespace, job.key, job.state), job.account) for job in jobs if job.account is not None]


def _lines(names: Sequence[str], rows: Iterable[_Row], asked: Prices | None, *, grouped_: bool) -> list[str]:
    cost = [f"COST{f' ({asked.currency})' if asked.currency else ''}"] if asked else []
    heads = [
        *(name.upper() for name in names),
        *(["JOBS"] if grouped_ else []),
        *("GPU-H", "CPU-H", "GIB-H", "QUEUED", "STARTING", "RUNNING", "RESTARTING", "GOODPUT"),
        *cost,
        "INTERRUPTIONS",
    ]
    table = []
    for key, account in rows:
        times = [duration(account.seconds.get(phase, 0.0)) for phase in PHASES if phase != "suspended"]
        goodput = account.goodput(is_gpu)
        table.append(
            [
                *(value or "-" for value in key),
                *([str(account.jobs)] if grouped_ else []),
                *(f"{hours:.2f}" for hours in _amounts(account)),
                *times,
                "-" if goodput is None else f"{goodput:.1%}",
                *([f"{account.cost(asked):.2f}"] if asked else []),
                _interruptions(account),
            ]
        )
    return Table(heads).lines(table)


def _amounts(account: Account) -> tuple[float, float, float]:
    return account.of(is_gpu), account.of(lambda name: name == CPU), account.of(lambda name: name == MEMORY)


def _interruptions(account: Account) -> str:
    """Without the starts, which every job has."""
    return ", ".join(f"{one.count} {one.cause}" for one in account.interruptions if one.cause != "Startup") or "-"


def plain(account: Account, asked: Prices | None) -> dict[str, Any]:
    """With camelCase keys."""
    gpus, cpu, memory = _amounts(account)
    goodput = account.goodput(is_gpu)
    return {
        "jobs": account.jobs,
        "gpuHours": round(gpus, 6),
        "cpuHours": round(cpu, 6),
        "memoryGibHours": round(memory, 6),
        "resourceHours": {name: round(hours, 6) for name, hours in account.hours.items()},
        "seconds": {phase: round(account.seconds.get(phase, 0.0), 3) for phase in PHASES},
        "goodput": None if goodput is None else round(goodput, 6),
        "interruptions": [
            {
                "cause": one.cause,
                "count": one.count,
                "seconds": round(one.seconds, 3),
                "resourceHours": {name: round(hours, 6) for name, hours in one.hours.items()},
            }
            for one in account.interruptions
        ],
        **({"cost": round(account.cost(asked), 6), "currency": asked.currency} if asked else {}),
    }


def config_map(client: Client, name: str) -> Resource:
    """The ConfigMap NAME or NAMESPACE/NAME. Raises Refused for what is no such name, and ApiError."""
    namespace, slash, short = name.rpartition("/")
    where = namespace if slash else client.namespace
    if not short or "/" in where:
        raise Refused(f"{name!r} is no ConfigMap: write NAME or NAMESPACE/NAME.")
    found: Resource = client.api.get(f"/api/v1/namespaces/{where}/configmaps/{short}")
    return found
