"""What a run's callback gathers: failures that count, reports of our tasks, and a line of text for each task.

The callback plugin (`callbacks/dljob_collect.py`) is made by Ansible; it feeds the one collector of the
process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from dljob_operator.durations import parse_duration
from dljob_operator.runner.messages import Failure

REQUEUE_ACTIONS = ("operator_sdk.util.requeue_after", "requeue_after")
_LONGEST_MESSAGE = 8 * 1024
_TOLD = ("changed", "msg", "period", "failed", "censored")


class Stats(Protocol):
    """The part of Ansible's AggregateStats that tells a rescued failure from another: counts by host."""

    rescued: Mapping[str, int]


class Collector:
    """Gathers one run. `stats` are the run's own, counted by Ansible before it calls back."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self.stats: Stats | None = None
        self.failures: list[Failure] = []
        self.reports: list[Mapping[str, Any]] = []
        self.tasks: list[Mapping[str, Any]] = []
        self._rescued = 0

    def finished(self, task: str, action: str, result: Mapping[str, Any]) -> None:
        """Take note of a task that went well."""
        self._report(action, result)
        self._told("runner_on_ok", task, action, result)

    def failed(self, task: str, action: str, result: Mapping[str, Any], *, ignored: bool) -> bool:
        """Take note of a failed task; return whether it counts, so was neither rescued nor ignored."""
        self._report(action, result)
        rescued_before, self._rescued = self._rescued, sum(self.stats.rescued.values()) if self.stats else 0
        rescued = self._rescued > rescued_before
        event = "runner_on_unreachable" if result.get("unreachable") else "runner_on_failed"
        self._told(event, task, action, result, ignored=ignored, rescued=rescued)
        if ignored or rescued:
            return False
        self.failures.append(Failure(task, failure_message(result)))
        return True

    def _told(self, event: str, task: str, action: str, result: Mapping[str, Any], **flags: bool) -> None:
        """Keep what whoever runs us may pass on; a result as a whole may be large."""
        res = {key: result[key] for key in _TOLD if key in result}
        if event != "runner_on_ok":
            res["msg"] = failure_message(result)
        name = task.partition(" : ")[2] or task  # without the role, as ansible-runner tells it
        self.tasks.append({"event": event, "task": name, "action": action, "res": res, **flags})

    def _report(self, action: str, result: Mapping[str, Any]) -> None:
        items = result.get("results")
        for item in [result, *(items if isinstance(items, list) else ())]:
            if not isinstance(item, Mapping):
                continue
            if isinstance(item.get("dljob"), Mapping):
                self.reports.append(item["dljob"])
            elif action in REQUEUE_ACTIONS and "period" in item:
                self.reports.append({"requeue_after": parse_duration(str(item["period"]))})


def failure_message(result: Mapping[str, Any]) -> str:
    """Return what a failed result says: its message, its failed items' messages, or what it printed."""
    items = result.get("results")
    if isinstance(items, list):
        failed = [item for item in items if isinstance(item, Mapping) and item.get("failed")]
        if failed:
            return "; ".join(dict.fromkeys(failure_message(item) for item in failed))[:_LONGEST_MESSAGE]
    said = str(result.get("msg") or result.get("censored") or "")
    printed = str(result.get("module_stderr") or result.get("stderr") or result.get("module_stdout") or "").strip()
    if printed and printed not in said:
        said = f"{said}: {printed[-1024:]}" if said else printed[-1024:]
    return said[:_LONGEST_MESSAGE] or "the task failed without a message"


collector = Collector()


def start(*, quiet: bool = False) -> Collector:
    """Begin anew, for one run, and return what will hold it; `quiet` is for a run that nobody asked for."""
    global collector
    collector = Collector(quiet=quiet)
    return collector
