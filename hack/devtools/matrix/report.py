"""docs/frameworks.md from the results of the cells. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from devtools.matrix import outcome
from devtools.matrix.cells import FRAMEWORKS, Framework, cells

HEAD = ("event", "policy", "the process hit", "the others", "operator and kubelet", "result")
Results = Mapping[str, Mapping[str, Any]]


def document(results: Results, facts: Mapping[str, str]) -> str:
    """The whole page. ``results`` are by the key of the cell."""
    ran = [framework for framework in FRAMEWORKS if any(cell.key in results for cell in cells(framework))]
    left = [framework.title for framework in FRAMEWORKS if framework not in ran]
    count = sum(cell.key in results for framework in FRAMEWORKS for cell in cells(framework))
    lines = [
        "# What frameworks do when a process fails",
        "",
        "Written by `make matrix`, which trains in real pods: in each step of 0.2 s all processes exchange a number by",
        "the framework's own collective. In the midst of it something happens to one process or to the job. The table",
        "says what followed, from the API server's records; nothing here is from memory.",
        "",
        *(f"- {key}: {value}" for key, value in facts.items()),
        f"- operator: the embedded engine, {_commits(results)}",
        f"- cells that ran: {count}",
        *([f"- not run: {', '.join(left)}"] if left else []),
        "",
        "Exit codes are the containers'; a time in the column *the others* counts from the end of the process that was",
        "hit, other times from the event. Kubelets report whole seconds. Signals come from outside, to the container's",
        "first process; OOM, exception and exit 3 happen in the training program. *counts 1 Worker* is a restart that",
        "`backoffLimit` limits, *does not count 1 master-0* one that followed from the loss of another replica.",
        "*ran on*: the container ran until the cell ended.",
        "",
        "## Silent hangs",
        "",
        *_hangs(results),
    ]
    for framework in ran:
        lines += ["", *_section(framework, results)]
    return "\n".join(lines) + "\n"


def _commits(results: Results) -> str:
    """The commits of the operator, each with the number of its cells."""
    counts = Counter(one.get("commit", "unknown") for one in results.values())
    return ", ".join(f"commit {name} ({count} cells)" for name, count in sorted(counts.items()))


def _hangs(results: Results) -> list[str]:
    found = outcome.hangs(results.values())
    if not found:
        return ["None of the cells hung."]
    titles = {framework.key: framework.title for framework in FRAMEWORKS}
    return [
        "In these cells no process made a step any more, none ended, and the job stayed Running. The last line of each",
        "log is the only sign.",
        "",
        *_rows(
            ("framework", "event", "policy", "last lines"),
            [(titles[one["framework"]], _event(one), _policy(one), _signs(one)) for one in found],
        ),
    ]


def _signs(one: Mapping[str, Any]) -> str:
    return "; ".join(f"{name}: `{_escaped(line[:90])}`" for name, line in one.get("last", {}).items())


def _section(framework: Framework, results: Results) -> list[str]:
    own = {cell.key: results.get(cell.key) for cell in cells(framework)}
    versions = sorted({one["version"] for one in own.values() if one and one.get("version")})
    replicas = ", ".join(f"{count} {type_}" for type_, count in framework.types.items())
    rows = []
    for cell in cells(framework):
        one = own[cell.key]
        given = {"event": cell.event, "victim": cell.victim, "policy": cell.policy, "scope": cell.scope}
        if one is None or one["result"].startswith("not run"):
            reason = one["result"] if one else "not run"
            rows.append((_event(given), _policy(given), "", "", "", reason))
            continue
        others = outcome.grouped(one["survivors"])
        rows.append((_event(given), _policy(given), one["victim_end"], others, _reaction(one), one["result"]))
    return [
        f"## {framework.title}",
        "",
        f"Version {', '.join(versions) or 'unknown'}; {framework.kind} {framework.version} with {replicas};"
        f" `{' '.join(framework.command)}`. {framework.note}".rstrip(),
        "",
        *_rows(HEAD, rows),
    ]


def _reaction(one: Mapping[str, Any]) -> str:
    """What the operator did, with the restarts that it took for consequences of another replica's loss."""
    followed = (one.get("status") or {}).get("consequentRestarts") or {}
    names = ", ".join(f"{count} {name}" for name, count in sorted(followed.items()))
    return one["reaction"] + (f"; does not count {names}" if names else "")


def _event(one: Mapping[str, Any]) -> str:
    return f"{one['victim']} {one['event']}".strip()


def _policy(one: Mapping[str, Any]) -> str:
    return one["policy"] + ("" if one["scope"] == "Replica" else f", restartScope {one['scope']}")


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("`", "'").strip()


def _rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]
