"""Runs cells on the local cluster: a job, an event in the midst of its training, and what follows."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from devtools.lab.matrix import cells, outcome
from devtools.lab.matrix.cells import Cell, manifest
from devtools.lab.matrix.outcome import Seen
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.client import MERGE, Client, Refused
from devtools.testbed.cluster.kindcluster import Kind
from devtools.testbed.ground import PODS

STEP = re.compile(r"step \d+ of \d+, (\d+) processes")
VERSION = re.compile(r"version (\S.*)")
START = 120.0
"""Seconds until the training must have begun."""
SILENCE = 70.0
"""Seconds without a step, without a new line in a log, and without a container that starts or ends: the job hangs."""
LIMIT = 150.0
"""Seconds after the event, beyond those of a late replica, after which a cell ends whatever happens."""
PAUSE = 1.0


class NotRun(Exception):
    """The event could not happen; the message says why."""


@dataclass
class Board:
    """What the watch has seen of the pods of all jobs."""

    jobs: dict[str, Seen] = field(default_factory=dict)
    pods: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    """The last state of the existing pods of each job, by replica."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, event: str, pod: dict[str, Any], now: float) -> None:
        """For Watching."""
        name = pod["metadata"]["name"]
        job, _, rest = name.partition("-")
        replica = "launcher" if rest.startswith("launcher") else rest
        with self.lock:
            self.jobs.setdefault(job, Seen()).take(pod, replica)
            present = self.pods.setdefault(job, {})
            if event != "DELETED":
                present[replica] = pod
            elif present.get(replica, {}).get("metadata", {}).get("uid") == pod["metadata"]["uid"]:
                del present[replica]

    def present(self, job: str) -> dict[str, dict[str, Any]]:
        """The existing pods of a job."""
        with self.lock:
            return dict(self.pods.get(job, {}))

    def running(self, job: str) -> dict[str, dict[str, Any]]:
        """The pods of a job of which a container runs."""
        return {name: pod for name, pod in self.present(job).items() if _runs(pod)}


def _runs(pod: Mapping[str, Any]) -> bool:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return any("running" in (one.get("state") or {}) for one in statuses)


class Run:
    """One cell. ``result`` is a row of the table with what it rests on."""

    def __init__(self, client: Client, kind: Kind, namespace: str, board: Board, cell: Cell, name: str) -> None:
        self._client, self._kind, self._namespace, self._board = client, kind, namespace, board
        self._cell, self._name = cell, name
        self._collection = cell.framework.job_kind.collection(namespace)
        self._steps: dict[str, str] = {}
        """The last step that each container has printed."""
        self._processes = 0
        self._moved = self._said = 0.0
        """When a step was last seen, and when any new line."""
        self._last: dict[str, str] = {}
        self._tails: dict[str, list[str]] = {}
        self.version = ""

    def result(self) -> dict[str, Any]:
        """Run it, and delete the job whatever happens."""
        cell, began = self._cell, time.time()
        row: dict[str, Any] = {
            "framework": cell.framework.key, "victim": cell.victim, "event": cell.event, "policy": cell.policy,
            "scope": cell.scope, "began": began,
        }  # fmt: skip
        try:
            self._client.request("POST", self._collection, manifest(cell, self._name))
            row |= self._watch_it(began)
        except NotRun as reason:
            row |= {"result": f"not run: {reason}", "status": self._status(), "last": self._last}
        except (Refused, ClusterError, OSError) as error:
            row |= {"result": f"not run: {error}"}
        finally:
            self._client.raw("DELETE", f"{self._collection}/{self._name}", {"propagationPolicy": "Background"})
            for pod in self._board.present(self._name).values():
                path = f"{PODS.format(self._namespace)}/{pod['metadata']['name']}"
                self._client.raw("DELETE", path, {"gracePeriodSeconds": 0})
        return row | {"seconds": time.time() - began, "version": self.version}

    def _watch_it(self, began: float) -> dict[str, Any]:
        cell = self._cell
        late = cells.LATE.get(cell.event, 0)
        if late:
            self._until(lambda: len(self._board.running(self._name)) == sum(cell.framework.types.values()), "all run")
        else:
            self._until(lambda: self._number() >= 8, "the training begins")
        before = {name: pod["metadata"]["uid"] for name, pod in self._board.running(self._name).items()}
        if cell.victim and cell.victim not in before:
            raise NotRun(f"{cell.victim} does not run")
        since = time.time()
        notes = self._do(cell, before)
        self._moved = now = time.time()
        deadline, state = now + LIMIT + late, ""
        while not state and (now := time.time()) < deadline:
            time.sleep(PAUSE)
            self._read()
            state = outcome.state_of(self._status())
            if now - max(self._moved, self._said, self._seen.changed) > SILENCE + late:
                break
        waited = time.time() - max(self._moved, self._seen.changed)
        took = time.time() - since
        time.sleep(2.0)  # the last pods
        self._read(self._board.present(self._name))
        status = self._status()
        victim = "" if late else cell.victim
        uid = before.get(victim, "")
        own = self._seen.first_end(uid, since) if uid else None
        moves = waited <= SILENCE + late
        return {
            "victim_end": outcome.ended(self._seen, uid, since) if uid else "",
            "survivors": outcome.survivors(self._seen, before, victim, own.at if own else since),
            "reaction": "; ".join([*notes, outcome.reaction(self._seen, before, status, since)]),
            "result": outcome.result(state, moves, waited, took, self._number(), cells.steps(cell)),
            "status": status, "last": self._last, "since": since,
            "ends": [vars(end) for end in self._seen.ends.values()], "uids": self._seen.uids,
            "tails": self._tails,
        }  # fmt: skip

    # ---- the event

    def _do(self, cell: Cell, before: Mapping[str, str]) -> list[str]:
        """Let it happen; returns what was seen meanwhile."""
        if cell.event in cells.LATE:
            return []
        if cell.event == cells.GROW:
            return [self._resize(3), self._resize(2)]
        if cell.event == cells.SUSPEND:
            return [self._suspend(before)]
        if cell.event == cells.REPLACE:
            return [self._replace()]
        pod = self._board.running(self._name)[cell.victim]
        name = pod["metadata"]["name"]
        if cell.event == cells.EVICT:
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
            self._client.request("POST", f"{PODS.format(self._namespace)}/{name}/eviction", body)
        elif cell.event in cells.SIGNALS:
            container = pod["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]
            command = ("ctr", "-n", "k8s.io", "task", "kill", "-s", cell.event, container)
            self._kind.engine.run("exec", self._kind.settings.node, *command)
        else:
            what = cells.ASKED[cell.event]
            if what == "exit 3" and cell.victim.partition("-")[0] in cell.framework.servers:
                what = "exit 3 of a server"
            write = f"echo {what} >/tmp/matrix-fault"
            self._kind.ctl("-n", self._namespace, "exec", name, "--", "sh", "-c", write, timeout=60)
        return []

    def _resize(self, workers: int) -> str:
        field_ = self._cell.framework.job_kind.field
        began = time.time()
        self._patch({"spec": {field_: {"Worker": {"replicas": workers}}}})
        try:
            self._until(lambda: self._processes == workers and self._moved > began, f"{workers} train", 90)
        except NotRun:
            ended = outcome.state_of(self._status())
            return f"the job ended before {workers} trained" if ended else f"{workers} do not train within 90 s"
        return f"{workers} train after {time.time() - began:.0f} s"

    def _replace(self) -> str:
        """Delete the worker as often as wanted; each time its replacement must train with the others."""
        number, times = self._processes, []
        for _ in range(cells.REPLACEMENTS):
            pod = self._board.running(self._name)[self._cell.victim]
            old = pod["metadata"]["uid"]
            began = time.time()
            self._client.request("DELETE", f"{PODS.format(self._namespace)}/{pod['metadata']['name']}")
            try:
                self._until(partial(self._trains_anew, old, number), "the replacement trains", 90)
            except NotRun:
                break
            times.append(time.time() - began)
        took = f" after {min(times):.0f} to {max(times):.0f} s" if times else ""
        return f"{len(times)} of {cells.REPLACEMENTS} replacements train{took}"

    def _trains_anew(self, old: str, number: int) -> bool:
        """Whether another pod than ``old`` is the worker, and has made a step together with all others."""
        present = self._board.running(self._name).get(self._cell.victim)
        uid = present["metadata"]["uid"] if present else old
        found = STEP.search(self._steps.get(uid, ""))
        return uid != old and found is not None and int(found[1]) == number

    def _suspend(self, before: Mapping[str, str]) -> str:
        began = time.time()
        self._patch({"spec": {"runPolicy": {"suspend": True}}})
        self._until(lambda: not self._board.present(self._name), "all pods are gone", 60)
        seconds = time.time() - began
        self._patch({"spec": {"runPolicy": {"suspend": False}}})
        return f"pods gone after {seconds:.0f} s"

    def _patch(self, body: Mapping[str, Any]) -> None:
        self._client.request("PATCH", f"{self._collection}/{self._name}", body, MERGE)

    # ---- what is seen

    @property
    def _seen(self) -> Seen:
        return self._board.jobs.setdefault(self._name, Seen())

    def _status(self) -> dict[str, Any]:
        code, data = self._client.raw("GET", f"{self._collection}/{self._name}")
        if code != 200:
            return {}
        return dict(json.loads(data).get("status") or {})

    def _until(self, wanted: Callable[[], bool], what: str, seconds: float = START) -> None:
        deadline = time.time() + seconds
        while not wanted():
            if time.time() > deadline or outcome.state_of(self._status()):
                raise NotRun(f"not so: {what}")
            time.sleep(PAUSE)
            self._read()

    def _number(self) -> int:
        return max((int(text.split()[1]) for text in self._steps.values()), default=0)

    def _read(self, pods: Mapping[str, dict[str, Any]] | None = None) -> None:
        """The last lines of the pods, or of all that run."""
        for replica, pod in (self._board.running(self._name) if pods is None else pods).items():
            name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
            text = self._client.text(f"{PODS.format(self._namespace)}/{name}/log?tailLines=12")
            if not self.version and (found := VERSION.search(text)):
                self.version = found[1]
            lines = [line for line in text.splitlines() if line.strip()]
            if lines:
                if self._tails.get(uid) != lines:
                    self._said = time.time()
                self._last[replica] = lines[-1][:300]
                self._tails[uid] = lines
            for line in reversed(lines):
                if found := STEP.search(line):
                    if self._steps.get(uid) != found[0]:
                        self._steps[uid], self._moved, self._processes = found[0], time.time(), int(found[1])
                    break
