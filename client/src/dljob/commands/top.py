"""``dljob top``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from dljob.client import Client
from dljob.output import Table, colors_wanted, size, structured
from dljob.usage import JobUsage, Usage, Usages, grouped, plain

_AMOUNTS = ("GPUS", "CPU", "MEMORY")


def run(given: argparse.Namespace, client: Client) -> tuple[int, Sequence[str]]:
    """Print the table; returns the exit code, and what could not be read."""
    found = client.usage(given.kind, all_namespaces=given.all_namespaces, selector=given.selector)
    if given.output:
        print(structured(_data(found, given.by), given.output))
    elif given.by:
        print("\n".join(_groups(found, given.by)))
    else:
        print("\n".join(_jobs(found.items, namespaces=given.all_namespaces)))
    if found.cluster and not given.output:
        gpus = found.cluster
        print(f"GPUs: {gpus.total}, of which jobs hold {gpus.jobs}, other pods {gpus.others}; {gpus.free} are free.")
    return 0, found.problems


def _data(found: Usages, by: Sequence[str]) -> object:
    if not by:
        return found.as_dict()
    groups = [
        {**dict(zip(by, group, strict=True)), "jobs": jobs, **plain(usage)}
        for group, jobs, usage in grouped(found.items, by)
    ]
    return {"groups": groups, "gpus": found.as_dict()["gpus"]}


def _jobs(items: Sequence[JobUsage], *, namespaces: bool) -> list[str]:
    names = [*(["NAMESPACE"] if namespaces else []), "NAME", "STATE", *_AMOUNTS, "NODES"]
    rows = []
    for one in sorted(items, key=lambda one: (-one.usage.gpus, -one.usage.cpu, one.job.namespace, one.job.name)):
        where = [one.job.namespace] if namespaces else []
        nodes = len({node for node, _ in one.pods} - {""})
        rows.append([*where, one.job.key, one.job.state, *_amounts(one.usage), str(nodes)])
    return Table(names, colored=colors_wanted(sys.stdout)).lines(rows)


def _groups(found: Usages, by: Sequence[str]) -> list[str]:
    rows = [
        [*(value or "-" for value in group), str(jobs), *_amounts(usage)]
        for group, jobs, usage in grouped(found.items, by)
    ]
    return Table([*(name.upper() for name in by), "JOBS", *_AMOUNTS]).lines(rows)


def _amounts(usage: Usage) -> list[str]:
    """``<held> (<waiting> wait)``, and ``<used>/<requested>``."""
    waits = f" (+{usage.waiting_gpus} wait)" if usage.waiting_gpus else ""
    cpu = "-" if usage.used_cpu is None else f"{usage.used_cpu:.3g}"
    memory = "-" if usage.used_memory is None else size(usage.used_memory)
    return [f"{usage.gpus}{waits}", f"{cpu}/{usage.cpu:.4g}", f"{memory}/{size(usage.memory)}"]
