"""`dljob-operator run`: the embedded engine, which watches the cluster and reconciles until it is stopped."""

from __future__ import annotations

import argparse
import dataclasses
import logging
import os
import socket
import tempfile
import threading
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.dljob.operator.plugins.module_utils.shared.own_namespace import own_namespace
from ansible_collections.dljob.operator.plugins.module_utils.shared.progress import NO_RANK, OFF, ON, RANK_0
from ansible_collections.dljob.operator.plugins.module_utils.shared.progress import VARIABLE as ENDPOINT
from ansible_collections.dljob.operator.plugins.module_utils.shared.write_deadline import VARIABLE as WRITE_DEADLINE
from ansible_collections.dljob.operator.plugins.module_utils.shared.write_deadline import WriteDeadline

from dljob_operator import __version__, logs
from dljob_operator.allocator import limit_arenas, start_trimming
from dljob_operator.engine.cache.informer_set import InformerSet
from dljob_operator.engine.controller import Controller
from dljob_operator.engine.kube import KubeApi
from dljob_operator.engine.lifecycle.cleanup import CleanupIncomplete, remove_created
from dljob_operator.engine.lifecycle.crds import Installed, install_crds
from dljob_operator.engine.lifecycle.fence import FencedRunner
from dljob_operator.engine.lifecycle.leader import LeaderElector, LeaseName, LeaseTimings
from dljob_operator.engine.requests import target_name
from dljob_operator.engine.serving.certificate import Certificate
from dljob_operator.engine.serving.health import Health
from dljob_operator.engine.serving.metrics import Metrics
from dljob_operator.engine.serving.metrics_access import MetricsAccess
from dljob_operator.engine.serving.metrics_server import serve_metrics
from dljob_operator.engine.serving.progress.metrics import ProgressMetrics
from dljob_operator.engine.serving.progress.service import ProgressService
from dljob_operator.failed_check import FailedCheck
from dljob_operator.history.service import prepare_recorder
from dljob_operator.options import RUN, add_common, add_options
from dljob_operator.runner import RunnerClient
from dljob_operator.runner.client import RunnerError
from dljob_operator.signals import SignalThread
from dljob_operator.watches import Watch, crds_directory
from dljob_operator.wiring import Operator

if TYPE_CHECKING:
    from dljob_operator.history.recorder import Recorder

_LOG = logging.getLogger("dljob_operator")
_REVIEW_TIMEOUT = 4.0  # seconds for the API server to say who reads the metrics, below the time limit of a connection


class LeadershipLost(Exception):
    """Another operator may reconcile the same jobs."""


class Stopping(threading.Event):
    """Set when the operator must stop. `reason` is the cause if it was not a signal."""

    reason = ""

    def because(self, reason: str) -> None:
        self.reason = reason
        self.set()

    def on_signal(self, number: int) -> None:
        if self.is_set():  # a second signal ends the process immediately
            os._exit(128 + number)
        self.set()


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of `dljob-operator`."""
    parser = commands.add_parser("run", help="watch the cluster and reconcile until stopped")
    parser.set_defaults(do=run)
    add_common(parser)
    add_options(parser, RUN)


def run(options: argparse.Namespace) -> int:
    """Reconcile until a signal. Raises what `EmbeddedEngine` raises."""
    limit_arenas()
    stopping = Stopping()
    with SignalThread() as signals:
        signals.start(stopping.on_signal)
        start_trimming()
        if not options.leader_elect:
            return EmbeddedEngine(options, stopping).run()
        _lease_timings(options).check()
        with tempfile.TemporaryDirectory(prefix="dljob-operator-lease-") as folder:
            return EmbeddedEngine(options, stopping, Path(folder) / "write-deadline").run()


def _lease_timings(options: argparse.Namespace) -> LeaseTimings:
    return LeaseTimings(
        options.leader_elect_lease_duration, options.leader_elect_renew_deadline, options.leader_elect_retry_period
    )


class EmbeddedEngine:
    """The parts of the operator, which `run` starts and ends.

    With an election, `deadline_file` tells the workers until when the leader may write. Raises ValueError for options
    that contradict each other, and what `Operator` raises.
    """

    def __init__(self, options: argparse.Namespace, stopping: Stopping, deadline_file: Path | None = None) -> None:
        self._options = options
        self._stopping = stopping
        self._operator = Operator(options)
        if options.cleanup_on_exit:
            _check_cleanup(options, self._operator.watches)
        self._deadline: WriteDeadline | None = None
        if deadline_file is not None:
            self._deadline = WriteDeadline(deadline_file, create=True)
            self._operator.environ[WRITE_DEADLINE] = str(deadline_file)
        self._certificate = _metrics_certificate(options)
        self._health = Health(options.health_probe_bind_address)
        self._elector: LeaderElector | None = None
        self._installed: list[Installed] = []
        self._metrics = Metrics(
            frameworks=_frameworks(self._operator.watches) if options.training_operator_metrics else None
        )
        self._history: Recorder | None = prepare_recorder(options, self._metrics.registry)

    def run(self) -> int:
        """Reconcile until the process must stop, and return 0.

        Raises NoCluster, ApiError, ApiConnectionError, RunnerError, LeadershipLost and CleanupIncomplete.
        """
        progress = self._prepare_progress()
        runner = self._operator.start_runner()
        try:
            api = self._operator.connect()
            _LOG.info(
                "starting",
                extra=logs.fields(version=__version__, watches_file=self._operator.watches_file, server=api.server),
            )
            self._install_crds(api)
            self._health.start()
            self._serve_metrics(api)
            if self._deadline is not None:
                self._elector = self._create_elector(api, runner, self._deadline)
            self._health.checks.append(runner.problem)  # of a standby too, whose fork server is loaded
            standing_by = [] if self._elector is None else [self._elector.not_ready]
            self._health.ready_checks += [lambda: _not_loaded(runner), *standing_by]
            if self._elector is not None and not self._stand_by(self._elector):
                runner.close()
                return 0
            controller = self._start_controller(api, runner)
            if progress is not None:
                _start_progress(progress, controller.informers, self._metrics)
        except BaseException:
            runner.close()
            if any(one.created for one in self._installed):
                _clean_up(api, self._installed)
            raise
        try:
            return self._wait(controller, runner)
        finally:
            if progress is not None:
                progress.stop()
            if self._elector is not None:
                self._elector.stop()
            if self._history is not None:  # last: the next leader need not wait for it
                self._history.stop()
            _clean_up(api, self._installed)

    def _prepare_progress(self) -> ProgressService | None:
        """The runs that follow know the endpoint."""
        options, operator = self._options, self._operator
        if options.progress == OFF:
            return None
        service = ProgressService(operator.connect(), os.environ, options.progress_url, options.progress_bind_address)
        operator.environ[ENDPOINT] = service.endpoint(RANK_0 if options.progress == ON else NO_RANK).text()
        return service

    def _install_crds(self, api: KubeApi) -> None:
        options, operator = self._options, self._operator
        if options.install_crds:
            directory = options.crds_dir or crds_directory(operator.watches_file, operator.process)
            mark = _identity() if options.cleanup_on_exit else ""
            install_crds(api, directory, mark, self._installed)

    def _serve_metrics(self, api: KubeApi) -> None:
        options = self._options
        access = MetricsAccess(api.with_timeout(_REVIEW_TIMEOUT)) if options.metrics_authentication else None
        serve_metrics(self._metrics.registry, options.metrics_bind_address, self._certificate, access)

    def _create_elector(self, api: KubeApi, runner: RunnerClient, deadline: WriteDeadline) -> LeaderElector:
        options = self._options

        def lost() -> None:
            self._stopping.because("another operator is the leader now")
            runner.close()  # at once, whatever the main thread does

        namespace = options.leader_election_namespace or own_namespace(os.environ) or "default"
        lease = LeaseName(namespace, options.leader_election_id)
        elector = LeaderElector(api, lease, _identity(), lost, _lease_timings(options))
        elector.on_renewed = deadline.extend
        return elector

    def _stand_by(self, elector: LeaderElector) -> bool:
        """Stand by with Ansible loaded until this process is the leader; return False if it must stop instead."""
        elector.start()
        self._health.checks.append(elector.problem)
        while not elector.elected.wait(0.1):
            if self._stopping.is_set():
                elector.stop()
                return False
        return True

    def _start_controller(self, api: KubeApi, runner: RunnerClient) -> Controller:
        elector, options, history = self._elector, self._options, self._history
        controller = Controller(
            self._operator.watches,
            api if elector is None else api.writing_while(elector.seconds_left),
            runner if elector is None else FencedRunner(runner, elector.leads),
            dataclasses.replace(
                self._operator.settings,
                selector=options.selector,
                reconcile_period=options.reconcile_period,
                progress=options.progress != OFF,
            ),
            metrics=self._metrics,
        )
        if history is not None:
            controller.on_job = history.job_changed
        controller.start()
        if history is not None:
            history.start(lambda: (job for _, job in controller.informers.jobs()))
        self._health.checks.append(controller.problem)
        self._health.ready_checks.append(controller.not_ready)
        return controller

    def _wait(self, controller: Controller, runner: RunnerClient) -> int:
        """Print the ready line as soon as everything is ready, then wait for the signal to stop."""
        stopping, options = self._stopping, self._options
        problems: list[Exception] = []

        def announce() -> None:
            try:
                runner.wait_ready()
            except RunnerError as error:
                if not stopping.is_set():  # stopping ends a fork server that is not ready yet, which is no error
                    problems.append(error)
                    stopping.set()
                return
            watched, missing = controller.wait_ready()
            if not stopping.is_set():
                later = f" (not installed yet: {', '.join(map(str, missing))})" if missing else ""
                message = f"ready: watching {', '.join(map(str, watched)) or 'nothing'}{later}"
                print(logs.ready_line(message, options.log_format), flush=True)

        threading.Thread(target=announce, name="announce", daemon=True).start()
        stopping.wait()
        if stopping.reason:
            # The new leader must be the only one that reconciles: kill the runs at once.
            problems.append(LeadershipLost(stopping.reason))
        grace = options.graceful_shutdown_timeout
        _LOG.info("stopping", extra=logs.fields(grace_seconds=grace))
        controller.stop(0 if problems else grace)
        self._health.stop()
        if problems:
            raise problems[0]
        _LOG.info("stopped")
        return 0


def _start_progress(service: ProgressService, informers: InformerSet, metrics: Metrics) -> None:
    """A port that is in use costs the reports, and not the jobs."""
    try:
        service.start(informers)
    except OSError as error:
        _LOG.error("cannot take reports of progress", extra=logs.fields(error=str(error)))
        return
    if informers.progress is not None:
        metrics.registry.register(ProgressMetrics(informers.progress))


def _identity() -> str:
    """A name of this process that no other has."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


def _frameworks(watches: Sequence[Watch]) -> dict[str, str]:
    """Each kind's framework, which is the name of its role."""
    return {target_name(watch): (watch.role or watch.playbook or Path()).stem for watch in watches}


def _metrics_certificate(options: argparse.Namespace) -> Certificate | None:
    files = (options.metrics_tls_cert_file, options.metrics_tls_key_file)
    if all(files):
        return Certificate(*files)
    if any(files):
        raise ValueError("--metrics-tls-cert-file and --metrics-tls-key-file need each other")
    if options.metrics_authentication:
        raise ValueError(
            "--metrics-authentication would receive tokens without TLS: add --metrics-tls-cert-file and "
            "--metrics-tls-key-file"
        )
    return None


def _check_cleanup(options: argparse.Namespace, watches: Sequence[Watch]) -> None:
    if not options.install_crds:
        raise ValueError("--cleanup-on-exit deletes what --install-crds has created: add --install-crds")
    if options.leader_elect:
        raise ValueError("--cleanup-on-exit would delete the jobs of the next leader: remove --leader-elect")
    finalized = [str(watch.gvk) for watch in watches if watch.finalizer]
    if finalized:
        raise ValueError(
            f"--cleanup-on-exit would wait for the finalizers of {', '.join(finalized)}, which no process runs "
            "while the operator is stopping: remove --cleanup-on-exit, or the finalizers from the watches file"
        )


def _clean_up(api: KubeApi, installed: Sequence[Installed]) -> None:
    """Delete the definitions in `installed` that were created. Raises CleanupIncomplete if some remain."""
    left = remove_created(api, installed)
    if left:
        raise CleanupIncomplete(
            f"still there: {', '.join(left)}; they are being deleted, see kubectl describe crd {left[0]}"
        )


def _not_loaded(runner: RunnerClient) -> str:
    try:
        runner.wait_ready(0)
    except RunnerError as error:
        return FailedCheck("Ansible is not loaded", str(error))
    return ""
