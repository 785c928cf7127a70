"""The stdout callback of warm runs: a line for each task, and everything that matters to the collector."""

from __future__ import annotations

from typing import Any

from ansible.plugins.callback import CallbackBase

from dljob_operator.runner import collect

DOCUMENTATION = """
name: dljob_collect
type: stdout
short_description: gathers a warm run's verdict in the process itself
description:
  - Prints one line for each task and hands results to the warm runner, without text to parse in between.
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "dljob_collect"

    def _say(self, line: str) -> None:
        if not collect.collector.quiet:
            self._display.display(line)

    def v2_runner_on_ok(self, result: Any) -> None:
        name, action = result._task.get_name(), result._task.action
        collect.collector.finished(name, action, result._result)
        self._say(f"{'changed' if result._result.get('changed') else 'ok'}: {name}")

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        name, action = result._task.get_name(), result._task.action
        counts = collect.collector.failed(name, action, result._result, ignored=bool(ignore_errors))
        said = collect.failure_message(result._result)
        self._say(f"{'failed' if counts else 'failed, handled'}: {name}: {said}")

    def v2_runner_on_unreachable(self, result: Any) -> None:
        ignored = bool(result._task.ignore_unreachable)
        collect.collector.failed(result._task.get_name(), result._task.action, result._result, ignored=ignored)

    def v2_runner_on_skipped(self, result: Any) -> None:
        self._say(f"skipped: {result._task.get_name()}")

    def v2_playbook_on_no_hosts_matched(self) -> None:
        collect.collector.failed("", "", {"msg": "no host matched; a playbook must run on localhost"}, ignored=False)
