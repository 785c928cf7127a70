"""The controller beside ansible-operator: it watches like the embedded engine, and requeues jobs.

ansible-operator starts the runs through the shim. They get the cached owned objects and the newest state of their job,
and use the API connection of this process, not the proxy of ansible-operator. A run of a role with long-lived workers
goes to `WorkerRuns`; any other run has a process of its own.
"""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import logging
import threading
from collections.abc import Sequence
from pathlib import Path

from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator import logs
from dljob_operator.ansible_operator_bridge import artifacts, command, events, split
from dljob_operator.ansible_operator_bridge.annotate import annotate
from dljob_operator.ansible_operator_bridge.command import Command, Input, JobNestedTooDeeply, UnsupportedRun
from dljob_operator.ansible_operator_bridge.input_folders import InputFolders
from dljob_operator.ansible_operator_bridge.parsed_run import ParsedRun, RunExit, newer
from dljob_operator.ansible_operator_bridge.requeue_queue import RequeueQueue
from dljob_operator.ansible_operator_bridge.supervise import Flags
from dljob_operator.ansible_operator_bridge.worker_runs import WorkerRuns
from dljob_operator.engine.cache import nesting
from dljob_operator.engine.cache.informer_set import WatchedKind
from dljob_operator.engine.cache.predicates import REQUEUE_ANNOTATION, Change, is_leaving, object_fields, uid_of
from dljob_operator.engine.cache.transforms import Object, custom
from dljob_operator.engine.controller import Controller, Runner
from dljob_operator.engine.controller_settings import ControllerSettings
from dljob_operator.engine.discovery import ApiResource
from dljob_operator.engine.events import EventRecorder
from dljob_operator.engine.kube import ApiConnectionError, KubeApi
from dljob_operator.engine.orphans import OrphanCollector
from dljob_operator.engine.outcome import JobOutcome, outcomes
from dljob_operator.engine.outcome_handler import OutcomeHandler
from dljob_operator.engine.queue.progress import stalled
from dljob_operator.engine.requests import CacheView, target_name
from dljob_operator.engine.serving.metrics import Metrics
from dljob_operator.engine.workers import Work, Workers
from dljob_operator.runner import RunRequest, RunResult
from dljob_operator.runner.collect import REQUEUE_ACTIONS
from dljob_operator.watches import Watch

_LOG = logging.getLogger(__name__)
FIRST_LIST = 30.0
"""Seconds for which runs wait for the caches to sync; without them the roles read from the API server."""
_WRITERS = 2
"""Threads that write requeue annotations."""


class BridgeController:
    """Serves the runs of ansible-operator and requeues jobs. Any thread may call `prepare` and `run`.

    What ansible-operator cannot load of `watches` (see `split`) the embedded engine reconciles, with the same cache.

    Where it elects no leader, workers reconcile a job whose owned objects have changed without an annotation.

    `start` returns immediately, and `stop` when all threads have ended. `informers` fill the cache; `requeues` and
    `worker_runs` are the two queues: jobs to requeue, and runs that wait for a worker.
    """

    def __init__(
        self,
        watches: Sequence[Watch],
        api: KubeApi,
        runner: Runner,
        settings: ControllerSettings,
        flags: Flags,
    ) -> None:
        self._api = api
        self._elects_leader = flags.elects_leader
        self._runner = runner
        self._settings = dataclasses.replace(settings, reconcile_period=flags.reconcile_period)
        self._numbers = itertools.count(1)
        self.requeues = RequeueQueue(on_change=runner.changes.increment)
        self._inputs = InputFolders()
        theirs, ours = split.split(watches)
        # One cache for both: the objects that jobs own are watched and decoded once.
        self._embedded = Controller(watches, api, runner, settings)
        self.informers = self._embedded.informers
        self.informers.redirect(theirs, self.requeues, self._job_changed)
        self._orphans = OrphanCollector(api, self.informers.orphans)
        # Nothing serves these metrics: ansible-operator has its own. It also requeues jobs after their period.
        self._outcome_handler = OutcomeHandler(self.requeues, EventRecorder(api), Metrics())
        self.worker_runs = WorkerRuns(self.informers, runner, self.requeues, self._outcome_handler, self._settings)
        self._reading = threading.Lock()
        annotations = Work(
            self.requeues.get, self._requeue_all, self.requeues.failed, self.requeues.close, threads=_WRITERS
        )
        works = [annotations, self.worker_runs.work, *([self._embedded.work] if ours else [])]
        self._workers = Workers(works, self.informers, runner)

    def start(self) -> None:
        self._workers.start()
        self._orphans.start()
        self._inputs.start()

    def problem(self) -> str:
        """Why jobs are no longer watched, reconciled or requeued, "" if they are. A forked run is the runner's."""
        return (
            self._workers.problem()
            or self.informers.problem()
            or stalled(self.worker_runs, self.informers, self._settings.run_timeout)
            or stalled(self._embedded.queue, self.informers, self._settings.run_timeout)
        )

    def stop(self, grace: float) -> None:
        """Write no more annotations, wait `grace` seconds, kill the runs in progress, and end all threads."""
        self._orphans.stop()
        self._inputs.stop()
        self._workers.stop(grace)

    def _job_changed(self, target: str, change: Change) -> None:
        kind = self.informers.kind(target)
        if kind is not None:
            self._inputs.note(kind.watch.gvk, change)

    # Runs for the shim

    def prepare(self, argv: Sequence[str], cwd: Path) -> ParsedRun:
        """Parse a run.

        Raises UnsupportedRun if the real ansible-runner must do it, and JobNestedTooDeeply if nothing must (see
        `ignore`).
        """
        asked = command.parse(argv, cwd)
        # one at a time: for a job of 1 MB this takes dozens of times as much memory
        with self._reading:
            parsed = self._parsed(asked, command.read(asked))
            if parsed.is_for_worker:  # which needs the object only, and there may be many of them
                return dataclasses.replace(parsed, given=dataclasses.replace(parsed.given, wrapped={}))
            return parsed

    def _parsed(self, asked: Command, given: Input) -> ParsedRun:
        kind = self.informers.kind(f"{given.resource.get('apiVersion')} {given.resource.get('kind')}")
        if kind is None:
            raise UnsupportedRun(f"watches.yaml has no {given.resource.get('apiVersion')} {given.resource.get('kind')}")
        target = _target(kind.watch, asked.path)
        if target is None:
            raise UnsupportedRun(f"watches.yaml does not run {asked.path} for {kind.watch.gvk}")
        return ParsedRun(asked, given, kind, target)

    def ignore(self, run: JobNestedTooDeeply) -> RunExit:
        """End a run as one that had nothing to do: after a failed one ansible-operator would try again and again.

        The cache does not have the job, so an Event says why it is ignored (`engine/cache/ignored_jobs.py`).
        """
        asked = run.asked
        kind, namespace, name = asked.folder.parts[-3:]
        nesting.log_ignored(_LOG, kind=kind, namespace=namespace, name=name)
        with artifacts.errors_logged({"kind": kind, "metadata": {"namespace": namespace, "name": name}}):
            artifacts.remove_input(asked)
            artifacts.prepare(asked)
        if run.socket:
            # its annotation, which may ask for a millisecond, was not read
            posted = events.of_job(JobOutcome(True), str(asked.path), self._settings.reconcile_period)
            events.post_all(run.socket, run.path, posted)
        return RunExit(0, f"ignored: {run}\n")

    def run(self, parsed: ParsedRun) -> RunExit:
        """Run it, post its events and write its artifacts; return when ansible-operator may continue."""
        uid = uid_of(dict(parsed.given.resource))
        cached = self.informers.wait_filled(FIRST_LIST)
        if cached and parsed.is_for_worker:
            return self.worker_runs.run(parsed)
        if not parsed.given.wrapped:
            parsed = self._parsed(parsed.asked, command.read(parsed.asked))
        self.requeues.begin(uid)
        try:
            return self._run_begun(parsed, uid, cached)
        except BaseException:
            self.requeues.done(uid, ok=False)
            raise

    def _run_begun(self, parsed: ParsedRun, uid: str, cached: bool) -> RunExit:
        asked, given, kind = parsed.asked, parsed.given, parsed.kind
        resource = newer(custom(dict(given.resource)), kind.get(uid))
        cache = self.informers.view([resource]) if cached else CacheView()
        fixed = {**kind.watch.vars, **(kind.watch.finalizer.vars if kind.watch.finalizer else {})}
        values = command.variables(given, resource, fixed)
        request = RunRequest(
            parsed.target,
            values.values,
            values.unsafe,
            cache.snapshot,
            self._settings.run_timeout,
            cluster_info=cache.cluster_info,
            facts=asked.facts,
        )
        result = self._runner.run(request)
        self._outcome_handler.ran(kind.watch, result)
        outcome = _own_requeue(outcomes(result, [uid])[uid], result)
        self.informers.wait_for(outcome.wrote)
        finished = self._report(parsed, result)
        self._outcome_handler.handle(kind.watch, resource, outcome, result)
        return finished

    def _report(self, parsed: ParsedRun, result: RunResult) -> RunExit:
        asked, given = parsed.asked, parsed.given
        code = 0 if result.ok else 2
        output = result.output + "".join(f"failed: {failure}\n" for failure in result.failures)
        with artifacts.errors_logged(dict(given.resource)):
            artifacts.remove_input(asked)
            artifacts.rotate(asked)
            artifacts.write(asked, output, code)
        if given.socket:
            events.post_all(given.socket, given.path, events.of_run(result, str(asked.path)))
        return RunExit(code, output)

    # Requeued jobs

    def _requeue_all(self, keys: Sequence[str]) -> None:
        for key in keys:
            found = self.informers.find(key)
            if found is None:
                self.requeues.discard(key)  # deleted while its last run waited
            elif self._may_reconcile(*found) and not self.requeues.has_failed(key):
                self.worker_runs.requeue(*found)
            elif found[0].api_resource is not None:
                self._requeue(key, found[0].api_resource, found[1])

    def _may_reconcile(self, kind: WatchedKind, resource: Object) -> bool:
        """Whether a worker of this process may do all that ansible-operator would do for an annotation."""
        if self._elects_leader or is_leaving(resource):
            return False
        return kind.watch.long_lived and not kind.watch.manage_status

    def _requeue(self, key: str, api_resource: ApiResource, resource: Object) -> None:
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        try:
            annotate(
                self._api, api_resource, resource["metadata"], {REQUEUE_ANNOTATION: f"{now} {next(self._numbers)}"}
            )
        except (ApiError, ApiConnectionError) as error:
            if isinstance(error, ApiError) and error.status in (404, 409, 422):
                return  # deleted, or another object has the name, so that the uid differs
            self.requeues.failed(key)
            _LOG.warning(
                "cannot write the requeue annotation", extra=logs.fields(**object_fields(resource), error=error)
            )
        else:
            _LOG.info("requeue annotation written", extra=logs.fields(**object_fields(resource)))


def _target(watch: Watch, path: Path) -> str | None:
    """Return the name of the target of `watch` for the role or playbook at `path`."""
    final = watch.finalizer
    choices = [(watch.role or watch.playbook, False)]
    if final is not None and (final.role or final.playbook):
        choices.append((final.role or final.playbook, True))
    for candidate, finalizing in choices:
        if candidate is not None and (candidate == path or candidate.resolve() == path.resolve()):
            return target_name(watch, finalizing=finalizing)
    return None


def _own_requeue(outcome: JobOutcome, result: RunResult) -> JobOutcome:
    """Drop the delay of a requeue_after task, because ansible-operator handles these."""
    if any(task["action"] in REQUEUE_ACTIONS and "period" in task["res"] for task in result.tasks):
        return dataclasses.replace(outcome, requeue_after=None)
    return outcome
