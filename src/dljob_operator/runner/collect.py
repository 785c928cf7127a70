"""Collect the results of a run: unhandled failures, the reports of our tasks, and an entry for each task.

Ansible instantiates the callback plugin `callbacks/dljob_collect.py`, which fills the only collector of the process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from dljob_operator.durations import parse_duration
from dljob_operator.runner.messages import TaskFailure

REQUEUE_ACTIONS = ("operator_sdk.util.requeue_after", "requeue_after")
_LONGEST_MESSAGE = 8 * 1024
_RESULT_KEYS = ("changed", "msg", "period", "failed", "censored")


class Stats(Protocol):
    """The part of Ansible's AggregateStats that counts rescued failures by host."""

    rescued: Mapping[str, int]


class Collector:
    """Collects the results of one run. `stats` are its AggregateStats, which Ansible updates before each callback."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self.stats: Stats | None = None
        self.failures: list[TaskFailure] = []
        self.reports: list[Mapping[str, Any]] = []
        self.tasks: list[Mapping[str, Any]] = []
        self._rescued = 0
        self._items: dict[str, list[str]] = {}
        """The messages of the failed items of the loop that runs, by host."""

    def item_failed(self, host: str, result: Mapping[str, Any]) -> None:
        """Record a failed item of a loop, whose own result does not say which have failed from ansible-core 2.21 on."""
        self._items.setdefault(host, []).append(failure_message(result))

    def message(self, host: str, result: Mapping[str, Any]) -> str:
        """Return the message of a failed result, or of the items that have failed on `host`. Call it once a result."""
        items = dict.fromkeys(self._items.pop(host, ()))
        return "; ".join(items)[:_LONGEST_MESSAGE] or failure_message(result)

    def finished(self, task: str, action: str, result: Mapping[str, Any]) -> None:
        """Record a successful task."""
        self._report(action, result)
        self._record("runner_on_ok", task, action, result)

    def failed(self, task: str, action: str, result: Mapping[str, Any], message: str, *, ignored: bool) -> bool:
        """Record a failed task with its `message`; return whether the failure was neither rescued nor ignored."""
        self._report(action, result)
        rescued_before, self._rescued = self._rescued, sum(self.stats.rescued.values()) if self.stats else 0
        rescued = self._rescued > rescued_before
        event = "runner_on_unreachable" if result.get("unreachable") else "runner_on_failed"
        failed = {} if result.get("unreachable") else {"failed": True}
        self._record(event, task, action, {**result, **failed, "msg": message}, ignored=ignored, rescued=rescued)
        if ignored or rescued:
            return False
        self.failures.append(TaskFailure(task, message))
        return True

    def _record(self, event: str, task: str, action: str, result: Mapping[str, Any], **flags: bool) -> None:
        """Record a task for ansible-operator. Only some keys of its result are kept, because results may be large."""
        res = {key: result[key] for key in _RESULT_KEYS if key in result}
        name = task.partition(" : ")[2] or task  # without the role, as in ansible-runner's events
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
    """Return the message of a failed result or, if it has none, the end of its output."""
    message = str(result.get("msg") or result.get("censored") or "")
    printed = str(result.get("module_stderr") or result.get("stderr") or result.get("module_stdout") or "").strip()
    if printed and printed not in message:
        message = f"{message}: {printed[-1024:]}" if message else printed[-1024:]
    return message[:_LONGEST_MESSAGE] or "the task failed without a message"


collector = Collector()


def start(*, quiet: bool = False) -> Collector:
    """Start collecting a run and return its collector. `quiet` suppresses the output, for warm-up runs."""
    global collector
    collector = Collector(quiet=quiet)
    return collector
