"""Report a run to ansible-operator: post JSON events to the unix socket that it has opened for the run.

Two events decide (`internal/ansible/controller/reconcile.go`): `playbook_on_stats` is required, and a
`runner_on_failed` that is neither ignored nor rescued makes the run fail. The events of ansible-runner do not say that
a failure was rescued, so that ansible-operator retries such a run for ever. Ours say it, in the format that
ansible-operator reads.
"""

from __future__ import annotations

import datetime
import http.client
import json
import logging
import os
import socket
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dljob_operator import logs
from dljob_operator.engine.outcome import JobOutcome
from dljob_operator.runner import RunResult

_LOG = logging.getLogger(__name__)
_HOST = "localhost"
_TIMEOUT = 20.0
"""Seconds for one event; ansible-operator takes at most 10."""

Event = dict[str, Any]
_TASK, _ACTION = "Reconcile", "dljob.operator.reconcile"
"""The only task of a role with long-lived workers, and its action."""
_COUNTS = ("ok", "changed", "failures", "skipped", "dark", "rescued", "ignored")


def of_run(result: RunResult, playbook: str) -> Iterator[Event]:
    """Yield the events of a run in the order in which to post them, including the final `playbook_on_stats`."""
    reported = set()
    counter = 0
    for task in result.tasks:
        counter += 1
        data = {
            "playbook": playbook,
            "task": task["task"],
            "task_action": task["action"],
            "host": _HOST,
            "res": task["res"],
        }
        if task["event"] == "runner_on_failed":
            reported.add((task["task"], task["res"].get("msg")))
            data["ignore_errors"] = bool(task.get("ignored"))
            if task.get("rescued"):
                data["rescued"] = {_HOST: 1}
        yield _event(counter, task["event"], data, task.get("line", ""))
    for failure in result.failures:
        # the run failed outside a task, which ansible-operator must know too
        if not failure.task and ("", failure.message) not in reported:
            counter += 1
            data = {"playbook": playbook, "task": "", "task_action": "", "host": _HOST, "ignore_errors": False}
            yield _event(counter, "runner_on_failed", {**data, "res": {"msg": failure.message}}, failure.message)
    yield _stats(counter + 1, playbook, result.stats)


def of_job(outcome: JobOutcome, playbook: str, period: float | None = None) -> Iterator[Event]:
    """Yield the events of a job's part of a worker's run: those of a run for this job alone, as few as are needed.

    With a `period` in seconds, a job that is ok gets one event, at which ansible-operator's reconcile ends: it neither
    waits for the statistics nor reads the job again, and reconciles it after the period, whatever its annotation says.
    """
    if outcome.ok and period is not None:
        yield _event(1, "runner_on_ok", {"task_action": "requeue_after", "res": {"period": f"{period:f}s"}}, "")
        return
    counter = 0
    if not outcome.ok:
        counter += 1
        data = {"playbook": playbook, "task": _TASK, "task_action": _ACTION, "host": _HOST, "ignore_errors": False}
        yield _event(counter, "runner_on_failed", {**data, "res": {"msg": outcome.message}}, outcome.message)
    counts = {"ok": 1, "changed": int(bool(outcome.wrote))} if outcome.ok else {"failures": 1}
    yield _stats(counter + 1, playbook, counts)


def _stats(counter: int, playbook: str, counts: Mapping[str, int]) -> Event:
    stats: dict[str, Any] = {name: {} for name in _COUNTS}
    stats |= {name: {_HOST: count} if count else {} for name, count in counts.items()}
    return _event(counter, "playbook_on_stats", {"playbook": playbook, **stats, "processed": {_HOST: 1}}, "")


def _event(counter: int, name: str, data: Mapping[str, Any], line: str) -> Event:
    return {
        "uuid": str(uuid.uuid4()),
        "counter": counter,
        "stdout": line,
        "start_line": counter - 1,
        "end_line": counter if line else counter - 1,
        "event": name,
        "event_data": dict(data),
        "pid": os.getpid(),
        # ansible-operator does not accept "Z" for UTC
        "created": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f+00:00"),
    }


class EventSocket:
    """A persistent connection to ansible-operator's socket. Use it as a context manager."""

    def __init__(self, path: str, url: str) -> None:
        self._connection = _UnixConnection(path)
        self._url = url

    def __enter__(self) -> EventSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def post(self, event: Event) -> None:
        """Post one event. Raises OSError or http.client.HTTPException if that fails."""
        body = json.dumps(event, default=str).encode()
        self._connection.request("POST", self._url, body, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status >= 300:
            raise OSError(f"{event['event']} was rejected with {answer.status} {body[:200].decode(errors='replace')}")


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_TIMEOUT)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_TIMEOUT)
        self.sock.connect(self._path)


def post_all(path: str, url: str, events: Iterable[Event]) -> bool:
    """Post the events of a run; return whether all were accepted. Without the last one ansible-operator retries."""
    try:
        with EventSocket(path, url) as there:
            for event in events:
                there.post(event)
    except (OSError, http.client.HTTPException) as error:
        _LOG.warning("ansible-operator rejected an event", extra=logs.fields(error=error))
        return False
    return True
