"""What ansible-operator is told of a run: JSON events, posted to the unix socket that it has opened for it.

Two of them decide (`internal/ansible/controller/reconcile.go`): `playbook_on_stats` must come, and a
`runner_on_failed` that is neither ignored nor rescued makes the run a failure. ansible-runner's own events do
not say that a failure was rescued, so that ansible-operator retries such a run for ever; ours do, in the
form that it reads.
"""

from __future__ import annotations

import datetime
import http.client
import json
import logging
import os
import socket
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from dljob_operator.runner import RunResult

_LOG = logging.getLogger(__name__)
_HOST = "localhost"
_TIMEOUT = 20.0
"""Seconds for one event; ansible-operator lets one wait for 10 at most."""

Event = dict[str, Any]


def of_run(result: RunResult, playbook: str) -> Iterator[Event]:
    """Yield the events of a run, the deciding last one included, in the order in which they are to be posted."""
    told = set()
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
            told.add((task["task"], task["res"].get("msg")))
            data["ignore_errors"] = bool(task.get("ignored"))
            if task.get("rescued"):
                data["rescued"] = {_HOST: 1}
        yield _event(counter, task["event"], data, task.get("line", ""))
    for failure in result.failures:
        # the run itself broke: no task to blame, and ansible-operator must hear of it all the same
        if not failure.task and ("", failure.message) not in told:
            counter += 1
            data = {"playbook": playbook, "task": "", "task_action": "", "host": _HOST, "ignore_errors": False}
            yield _event(counter, "runner_on_failed", {**data, "res": {"msg": failure.message}}, failure.message)
    stats = {name: {_HOST: count} if count else {} for name, count in result.stats.items()}
    for name in ("ok", "changed", "failures", "skipped", "dark", "rescued", "ignored"):
        stats.setdefault(name, {})
    stats["processed"] = {_HOST: 1}
    yield _event(counter + 1, "playbook_on_stats", {"playbook": playbook, **stats}, "")


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
        # ansible-operator takes no "Z" for UTC
        "created": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f+00:00"),
    }


class EventSocket:
    """One kept connection to ansible-operator's socket. Use it as a context."""

    def __init__(self, path: str, url: str) -> None:
        self._connection = _UnixConnection(path)
        self._url = url

    def __enter__(self) -> EventSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def post(self, event: Event) -> None:
        """Post one event. Raises OSError or http.client.HTTPException where it was not taken."""
        body = json.dumps(event, default=str).encode()
        self._connection.request("POST", self._url, body, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        said = answer.read()
        if answer.status >= 300:
            raise OSError(f"{event['event']} was answered {answer.status} {said[:200].decode(errors='replace')}")


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_TIMEOUT)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_TIMEOUT)
        self.sock.connect(self._path)


def post_all(path: str, url: str, result: RunResult, playbook: str) -> bool:
    """Post a run's events; return whether all were taken. Without the last one ansible-operator tries again."""
    try:
        with EventSocket(path, url) as there:
            for event in of_run(result, playbook):
                there.post(event)
    except (OSError, http.client.HTTPException) as error:
        _LOG.warning("ansible-operator did not take an event: %s", error)
        return False
    return True
