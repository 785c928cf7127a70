"""benchmarks/matrix.csv from the results of the cells. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from devtools.lab.matrix import outcome
from devtools.lab.matrix.cells import FRAMEWORKS, Cell, cells
from devtools.testbed.report import as_csv

HEAD = (
    "framework", "version", "event", "policy", "the process hit", "the others", "operator and kubelet", "result",
    "last lines of a hang", "commit", "date", "cluster",
)  # fmt: skip
Results = Mapping[str, Mapping[str, Any]]


def table(results: Results, facts: Mapping[str, str]) -> str:
    """A row for each cell of the frameworks that ran. ``results`` are by the key of the cell."""
    rows: list[dict[str, str]] = []
    for framework in FRAMEWORKS:
        own = list(cells(framework))
        ran = [results[cell.key] for cell in own if cell.key in results]
        if ran:
            # a process that was killed early may not have printed its version
            version = next((one["version"] for one in ran if one.get("version")), "")
            rows += [_row(cell, results.get(cell.key), {"version": version, **facts}) for cell in own]
    return as_csv(HEAD, rows)


def _row(cell: Cell, one: Mapping[str, Any] | None, facts: Mapping[str, str]) -> dict[str, str]:
    given = {
        "framework": cell.framework.title,
        "event": f"{cell.victim} {cell.event}".strip(),
        "policy": cell.policy + ("" if cell.scope == "Replica" else f", restartScope {cell.scope}"),
    }
    if one is None or one["result"].startswith("not run"):
        return given | {"result": one["result"] if one else "not run"}
    return given | {
        "version": one.get("version") or facts["version"],
        "the process hit": one["victim_end"],
        "the others": outcome.grouped(one["survivors"]),
        "operator and kubelet": _reaction(one),
        "result": one["result"].replace("**", ""),
        "last lines of a hang": _signs(one),
        "commit": one.get("commit", ""),
        "date": facts.get("date", ""),
        "cluster": facts.get("cluster", ""),
    }


def _signs(one: Mapping[str, Any]) -> str:
    if "hangs" not in one["result"]:
        return ""
    return "; ".join(f"{name}: {line[:90].strip()}" for name, line in one.get("last", {}).items())


def _reaction(one: Mapping[str, Any]) -> str:
    """What the operator did, with the restarts that it took for consequences of another replica's loss."""
    followed = (one.get("status") or {}).get("consequentRestarts") or {}
    names = ", ".join(f"{count} {name}" for name, count in sorted(followed.items()))
    return one["reaction"] + (f"; does not count {names}" if names else "")
