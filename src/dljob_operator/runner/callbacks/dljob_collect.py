"""The stdout callback of our runs: it prints a line for each task and passes results to the collector."""

from __future__ import annotations

from typing import Any

from ansible.plugins.callback import CallbackBase

from dljob_operator.runner import collect

DOCUMENTATION = """
name: dljob_collect
type: stdout
short_description: collects the results of a run within the process
description:
  - Prints one line for each task and passes results to the runner, which need not parse text.
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "dljob_collect"

    def _display_line(self, line: str) -> None:
        if not collect.collector.quiet:
            self._display.display(line)

    def v2_runner_on_ok(self, result: Any) -> None:
        name, action = result._task.get_name(), result._task.action
        collect.collector.finished(name, action, result._result)
        self._display_line(f"{'changed' if result._result.get('changed') else 'ok'}: {name}")

    def v2_runner_item_on_failed(self, result: Any) -> None:
        collect.collector.item_failed(result._host.get_name(), result._result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._failed(result, ignored=bool(ignore_errors))

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._failed(result, ignored=bool(result._task.ignore_unreachable))

    def _failed(self, result: Any, *, ignored: bool) -> None:
        name, action = result._task.get_name(), result._task.action
        message = collect.collector.message(result._host.get_name(), result._result)
        counts = collect.collector.failed(name, action, result._result, message, ignored=ignored)
        self._display_line(f"{'failed' if counts else 'failed, handled'}: {name}: {message}")

    def v2_runner_on_skipped(self, result: Any) -> None:
        self._display_line(f"skipped: {result._task.get_name()}")

    def v2_playbook_on_no_hosts_matched(self) -> None:
        collect.collector.failed("", "", {}, "no host matched; a playbook must run on localhost", ignored=False)
