"""The controller beside ansible-operator: it watches as the embedded engine does, but requeues instead of running.

The runs come from ansible-operator, through the shim; they get the watch's snapshot and the newest state of
their job, and use this process's own way to the API server, not the proxy that ansible-operator offers.
"""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dljob_operator.ansible_operator_bridge import artifacts, command, events
from dljob_operator.ansible_operator_bridge.command import Command, Input, UnsupportedRun
from dljob_operator.ansible_operator_bridge.requeue_queue import RequeueQueue
from dljob_operator.engine.controller import Controller, Runner, Settings, _Kind
from dljob_operator.engine.kube import ApiConnectionError, ApiError, KubeApi
from dljob_operator.engine.outcome import JobOutcome, outcomes
from dljob_operator.engine.predicates import title, uid_of, version_of
from dljob_operator.engine.requests import Snapshot, target_name
from dljob_operator.engine.resource_versions import number
from dljob_operator.engine.transforms import Object, custom
from dljob_operator.runner import RunRequest, RunResult
from dljob_operator.runner.collect import REQUEUE_ACTIONS
from dljob_operator.watches import Watch

_LOG = logging.getLogger(__name__)
REQUEUE_ANNOTATION = "dljob.operator/nudged"
"""The annotation whose change makes ansible-operator look at a job again: a time and a number."""


@dataclasses.dataclass(frozen=True)
class RunExit:
    """A run's exit code, as ansible-playbook would have it, and what it printed."""

    code: int
    output: str


class BridgeController(Controller):
    """Serves the runs of ansible-operator and requeues it. `prepare` and `run` may be called from any thread."""

    def __init__(
        self,
        watches: Sequence[Watch],
        api: KubeApi,
        runner: Runner,
        settings: Settings | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        first_list: float = 30.0,
    ) -> None:
        """`first_list` is how many seconds runs wait for the caches; without them the roles read for themselves."""
        self._requeues = RequeueQueue(clock)
        super().__init__(watches, api, runner, settings, queue=self._requeues)
        self._numbers = itertools.count(1)
        self._first_list = first_list

    # The runs that the shim asks for

    def prepare(self, argv: Sequence[str], cwd: Path) -> ParsedRun:
        """Read what a run is to do. Raises UnsupportedRun where the real ansible-runner is to do it."""
        asked = command.parse(argv, cwd)
        given = command.read(asked)
        kind = self._kinds.get(f"{given.job.get('apiVersion')} {given.job.get('kind')}")
        if kind is None:
            raise UnsupportedRun(f"watches.yaml has no {given.job.get('apiVersion')} {given.job.get('kind')}")
        target = _target(kind.watch, asked.path)
        if target is None:
            raise UnsupportedRun(f"watches.yaml does not run {asked.path} for {kind.watch.gvk}")
        return ParsedRun(asked, given, kind, target)

    def run(self, parsed: ParsedRun) -> RunExit:
        """Run it, post its events, leave its artifacts; return when ansible-operator may go on."""
        uid = uid_of(dict(parsed.given.job))
        cached = self._caches_are_filled()
        self._requeues.begin(uid)
        try:
            return self._run_begun(parsed, uid, cached)
        except BaseException:
            self._queue.done(uid, ok=False)
            raise

    def _run_begun(self, parsed: ParsedRun, uid: str, cached: bool) -> RunExit:
        asked, given, kind = parsed.asked, parsed.given, parsed.kind
        job = _newer(custom(dict(given.job)), kind.get(uid))
        snapshot: Snapshot | None = self._snapshot([job]) if cached else None
        fixed = {**kind.watch.vars, **(kind.watch.finalizer.vars if kind.watch.finalizer else {})}
        values = command.variables(given, job, fixed)
        request = RunRequest(
            parsed.target,
            values,
            given.unsafe,
            snapshot,
            self._settings.run_timeout,
            cluster_info=self._cluster_info.snapshot() if cached else None,
            facts=asked.facts,
        )
        result = self._runner.run(request)
        self._log_run(kind, [job], result)
        outcome = _own_requeue(outcomes(result, [uid])[uid], result)
        self._catch_up([outcome])
        finished = self._tell(parsed, result)
        self._conclude(kind, job, outcome, result)
        return finished

    def _tell(self, parsed: ParsedRun, result: RunResult) -> RunExit:
        asked, given = parsed.asked, parsed.given
        code = 0 if result.ok else 2
        output = result.output + "".join(f"failed: {failure}\n" for failure in result.failures)
        try:
            artifacts.rotate(asked)
            artifacts.write(asked, output, code)
        except OSError as error:
            _LOG.warning("%s: its artifacts could not be written: %s", title(dict(given.job)), error)
        if given.socket:
            events.post_all(given.socket, given.path, result, str(asked.path))
        return RunExit(code, output)

    def _caches_are_filled(self) -> bool:
        deadline = time.monotonic() + self._first_list
        info_synced = all(
            informer.has_synced.wait(max(0.0, deadline - time.monotonic())) for informer in self._cluster_info.informers
        )
        return info_synced and all(
            informer.has_synced.wait(max(0.0, deadline - time.monotonic())) and informer.synced.is_set()
            for informers in self._owned.values()
            for informer in informers
        )

    # What takes the place of the embedded engine's runs

    def _reconcile(self, keys: Sequence[str]) -> None:
        for key in keys:
            kind, obj = self._find(key)
            if kind is not None and obj is not None and kind.resource is not None:
                self._requeue(key, kind, obj)

    def _requeue(self, key: str, kind: _Kind, obj: Object) -> None:
        assert kind.resource is not None
        metadata = obj["metadata"]
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        body = {"metadata": {"annotations": {REQUEUE_ANNOTATION: f"{now} {next(self._numbers)}"}, "uid": key}}
        try:
            self._api.request(
                "PATCH",
                kind.resource.item(metadata.get("namespace", ""), metadata["name"]),
                body,
                query={"fieldManager": "dljob-operator"},
                content_type="application/merge-patch+json",
            )
        except (ApiError, ApiConnectionError) as error:
            if isinstance(error, ApiError) and error.status in (404, 409, 422):
                return  # deleted, or another object of that name: the uid does not fit
            self._requeues.failed(key)
            _LOG.warning("%s %s: ansible-operator could not be told to look: %s", kind.watch.gvk, title(obj), error)

    def _period(self, kind: _Kind, obj: Object) -> float | None:
        return None  # ansible-operator keeps it


@dataclasses.dataclass(frozen=True)
class ParsedRun:
    """A run that has been read and found to be ours."""

    asked: Command
    given: Input
    kind: _Kind
    target: str


def _target(watch: Watch, path: Path) -> str | None:
    """What of `watch` runs the role or playbook at `path`."""
    final = watch.finalizer
    choices = [(watch.role or watch.playbook, False)]
    if final is not None and (final.role or final.playbook):
        choices.append((final.role or final.playbook, True))
    for candidate, finalizing in choices:
        if candidate is not None and candidate.resolve() == path.resolve():
            return target_name(watch, finalizing=finalizing)
    return None


def _newer(handed: Object, cached: Object | None) -> Object:
    """Both are views of one object; ansible-operator's own cache may be behind ours, or ours behind it."""
    if cached is None:
        return handed
    return cached if number(version_of(cached)) > number(version_of(handed)) else handed


def _own_requeue(outcome: JobOutcome, result: RunResult) -> JobOutcome:
    """A requeue_after task is told to ansible-operator, which keeps it by itself."""
    if any(task["action"] in REQUEUE_ACTIONS and "period" in task["res"] for task in result.tasks):
        return dataclasses.replace(outcome, requeue_after=None)
    return outcome


def request_of(line: Mapping[str, Any]) -> tuple[list[str], Path]:
    """Read the shim's line. Raises UnsupportedRun where it is none."""
    argv, cwd = line.get("argv"), line.get("cwd")
    if not isinstance(argv, list) or not isinstance(cwd, str):
        raise UnsupportedRun("not a request of the shim")
    return [str(word) for word in argv], Path(cwd)
