"""The command line: `dljob-operator run`, and `dljob-operator serve` beside ansible-operator."""

from __future__ import annotations

import argparse
import logging
import os
import socket
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from ansible_collections.dljob.operator.plugins.module_utils.shared import operator_defaults
from ansible_collections.dljob.operator.plugins.module_utils.shared.config_namespaces import config_namespaces
from ansible_collections.dljob.operator.plugins.module_utils.shared.gang_scheduler import gang_scheduler
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import (
    CLOUD_VARIABLE,
    CONFIG_NAMESPACE_VARIABLE,
    FORCE_DELETE_VARIABLE,
    GANG_SCHEDULER_VARIABLE,
    KUBECTL_DELIVERY_IMAGE,
    KUBECTL_DELIVERY_VARIABLE,
    KUEUE_VARIABLE,
    MAX_REPLICAS,
    MAX_REPLICAS_VARIABLE,
    NON_ROOT_USER,
    NON_ROOT_USER_VARIABLE,
    SERVICES,
    SERVICES_VARIABLE,
    TERMINATION_MESSAGE_POLICIES,
    TERMINATION_MESSAGE_POLICY_VARIABLE,
)
from ansible_collections.dljob.operator.plugins.module_utils.shared.own_namespace import own_namespace
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.shared.write_deadline import VARIABLE as WRITE_DEADLINE
from ansible_collections.dljob.operator.plugins.module_utils.shared.write_deadline import WriteDeadline

from dljob_operator import __version__, convert, logs, preflight
from dljob_operator.allocator import limit_arenas, start_trimming
from dljob_operator.ansible_operator_bridge import harmful_annotations, split, supervise
from dljob_operator.ansible_operator_bridge.controller import BridgeController
from dljob_operator.ansible_operator_bridge.server import ShimServer
from dljob_operator.ansible_operator_bridge.watchdog import Watchdog
from dljob_operator.durations import parse_duration
from dljob_operator.engine.controller import Controller
from dljob_operator.engine.kube import ApiConnectionError, KubeApi, NoCluster, find_kubeconfig
from dljob_operator.engine.lifecycle.cleanup import CleanupIncomplete, remove_created
from dljob_operator.engine.lifecycle.crds import Installed, install_crds
from dljob_operator.engine.lifecycle.fence import FencedRunner
from dljob_operator.engine.lifecycle.leader import LEASE, LeaderElector, LeaseName, LeaseTimings
from dljob_operator.engine.requests import target_name, targets
from dljob_operator.engine.serving.certificate import Certificate
from dljob_operator.engine.serving.health import Health
from dljob_operator.engine.serving.metrics import Metrics
from dljob_operator.engine.serving.metrics_access import MetricsAccess
from dljob_operator.engine.serving.metrics_server import serve_metrics
from dljob_operator.engine.settings import Settings
from dljob_operator.problem import Problem
from dljob_operator.runner import RunnerClient
from dljob_operator.runner.client import RunnerError
from dljob_operator.runner.prefork import Preforked
from dljob_operator.signals import SignalThread
from dljob_operator.watches import Surroundings, Watch, WatchesError, crds_directory, default_watches_file, load_watches

_LOG = logging.getLogger("dljob_operator")
_LOG_LEVEL, _LOG_FORMAT = "DLJOB_LOG_LEVEL", "DLJOB_LOG_FORMAT"
"""Variables of the image, whose entrypoint passes its arguments to ansible-operator."""
_LAST_RUNS = 5.0  # seconds for runs that are still in progress when ansible-operator has ended
_REVIEW_TIMEOUT = 4.0  # seconds for the API server to say who reads the metrics, below the time limit of a connection


def main(argv: Sequence[str] | None = None, preforked: Preforked | None = None) -> int:
    """Run the command line `argv` and return the exit code: 0, or 1 with the reason on stderr.

    `preforked` becomes the fork server of the commands that have one.
    """
    options = _parser().parse_args(argv, argparse.Namespace(preforked=preforked))
    logs.configure(options.log_level, options.log_format)
    # urllib3 warns when a full pool opens one more connection. Users of the operator need not act on that.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    try:
        return int(options.do(options))
    except (WatchesError, NoCluster, RunnerError, CleanupIncomplete, LeadershipLost, BridgeStuck, ValueError) as error:
        print(f"dljob-operator: {error}", file=sys.stderr)
    except (ApiError, ApiConnectionError) as error:
        print(f"dljob-operator: the API server returned an error: {error}", file=sys.stderr)
    return 1


class LeadershipLost(Exception):
    """Another operator may reconcile the same jobs."""


class BridgeStuck(Exception):
    """A part of the bridge no longer works, which a restart may mend."""


class _Stopping(threading.Event):
    """Set when the operator must stop. `reason` is the cause if it was not a signal."""

    reason = ""

    def because(self, reason: str) -> None:
        self.reason = reason
        self.set()

    def on_signal(self, number: int) -> None:
        if self.is_set():  # a second signal ends the process immediately
            os._exit(128 + number)
        self.set()


def _run(options: argparse.Namespace) -> int:
    limit_arenas()
    stopping = _Stopping()
    with SignalThread() as signals:
        signals.start(stopping.on_signal)
        start_trimming()
        if not options.leader_elect:
            return _run_until(stopping, options, None)
        _lease_timings(options).check()
        with tempfile.TemporaryDirectory(prefix="dljob-operator-lease-") as folder:
            return _run_until(stopping, options, Path(folder) / "write-deadline")


def _run_until(stopping: _Stopping, options: argparse.Namespace, deadline_file: Path | None) -> int:
    around = Surroundings.of_this_process()
    watches_file = options.watches_file or default_watches_file(around)
    watches = load_watches(watches_file, around)
    if options.cleanup_on_exit:
        _check_cleanup(options, watches)
    kubeconfig = find_kubeconfig(options.kubeconfig, os.environ)
    environ = _run_environ(kubeconfig, options)
    deadline = None
    if deadline_file is not None:
        deadline = WriteDeadline(deadline_file, create=True)
        environ[WRITE_DEADLINE] = str(deadline_file)
    accelerators_in = config_namespaces(environ)
    certificate = _metrics_certificate(options)
    health = Health(options.health_probe_bind_address) if options.health_probe_bind_address else None
    # Loading Ansible takes longer than everything else, so start it first.
    runner = RunnerClient(targets(watches), options.max_concurrent_reconciles, environ, preforked=options.preforked)
    runner.start()
    installed: list[Installed] = []
    try:
        api = KubeApi.connect(kubeconfig)
        _LOG.info(
            "starting",
            extra=logs.fields(version=__version__, watches_file=watches_file, server=api.server),
        )
        if options.install_crds:
            directory = options.crds_dir or crds_directory(watches_file, around)
            mark = f"{socket.gethostname()}_{uuid.uuid4()}" if options.cleanup_on_exit else ""
            install_crds(api, directory, mark, installed)
        if health is not None:
            health.start()
        metrics = Metrics(frameworks=_frameworks(watches) if options.training_operator_metrics else None)
        access = MetricsAccess(api.with_timeout(_REVIEW_TIMEOUT)) if options.metrics_authentication else None
        serve_metrics(metrics.registry, options.metrics_bind_address, certificate, access)
        elector = None if deadline is None else _elector(options, api, stopping, runner, deadline)
        if health is not None:
            health.checks.append(runner.problem)  # of a standby too, whose fork server is loaded
            health.ready_checks += [lambda: _not_loaded(runner), *([elector.not_ready] if elector else [])]
        if elector is not None and not _elected(elector, stopping, health):
            runner.close()
            _clean_up(api, installed)
            return 0
        controller = Controller(
            watches,
            api if elector is None else api.writing_while(elector.seconds_left),
            runner if elector is None else FencedRunner(runner, elector.leads),
            Settings(
                namespaces=_namespaces(options),
                selector=options.selector,
                max_concurrent=options.max_concurrent_reconciles,
                reconcile_period=options.reconcile_period,
                run_timeout=options.run_timeout,
                config_namespaces=accelerators_in,
                gang=gang_scheduler(options.gang_scheduler_name),
                kueue=operator_defaults.kueue(options.kueue),
            ),
            metrics=metrics,
        )
        controller.start()
        if health is not None:
            health.checks.append(controller.problem)
            health.ready_checks.append(controller.not_ready)
    except BaseException:
        runner.close()
        if any(one.created for one in installed):
            _clean_up(api, installed)
        raise
    try:
        return _wait(options, controller, runner, stopping, health)
    finally:
        if elector is not None:
            elector.stop()
        _clean_up(api, installed)


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
        return Problem("Ansible is not loaded", str(error))
    return ""


def _elector(
    options: argparse.Namespace, api: KubeApi, stopping: _Stopping, runner: RunnerClient, deadline: WriteDeadline
) -> LeaderElector:
    identity = f"{socket.gethostname()}_{uuid.uuid4()}"

    def lost() -> None:
        stopping.because("another operator is the leader now")
        runner.close()  # at once, whatever the main thread does

    lease = LeaseName(options.leader_election_namespace, options.leader_election_id)
    elector = LeaderElector(api, lease, identity, lost, _lease_timings(options))
    elector.on_renewed = deadline.extend
    return elector


def _lease_timings(options: argparse.Namespace) -> LeaseTimings:
    return LeaseTimings(
        options.leader_elect_lease_duration, options.leader_elect_renew_deadline, options.leader_elect_retry_period
    )


def _elected(elector: LeaderElector, stopping: _Stopping, health: Health | None) -> bool:
    """Stand by with Ansible loaded until this process is the leader; return False if it must stop instead."""
    elector.start()
    if health is not None:
        health.checks.append(elector.problem)
    while not elector.elected.wait(0.1):
        if stopping.is_set():
            elector.stop()
            return False
    return True


def _wait(
    options: argparse.Namespace,
    controller: Controller,
    runner: RunnerClient,
    stopping: _Stopping,
    health: Health | None,
) -> int:
    """Print the ready line as soon as everything is ready, then wait for the signal to stop."""
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
    if health is not None:
        health.stop()
    if problems:
        raise problems[0]
    _LOG.info("stopped")
    return 0


def _serve(options: argparse.Namespace) -> int:
    """Run the given command, usually ansible-operator; serve its runs and write requeue annotations."""
    limit_arenas()
    with SignalThread() as signals:
        start_trimming()
        return _serve_with(signals, options)


def _serve_with(signals: SignalThread, options: argparse.Namespace) -> int:
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise ValueError("serve: add the command to run: dljob-operator serve -- ansible-operator run")
    around = Surroundings.of_this_process()
    watches_file = options.watches_file or default_watches_file(around)
    watches = load_watches(watches_file, around)
    kubeconfig = find_kubeconfig(options.kubeconfig, os.environ)
    environ = _run_environ(kubeconfig, options)
    accelerators_in = config_namespaces(environ)
    theirs, ours = split.split(watches)
    api = KubeApi.connect(kubeconfig)
    runner = RunnerClient(targets(watches), options.max_concurrent_reconciles, environ, preforked=options.preforked)
    runner.start()
    settings = Settings(
        namespaces=_namespaces(options),
        max_concurrent=options.max_concurrent_reconciles,
        run_timeout=options.run_timeout,
        config_namespaces=accelerators_in,
        gang=gang_scheduler(options.gang_scheduler_name),
        kueue=operator_defaults.kueue(options.kueue),
    )
    with tempfile.TemporaryDirectory(prefix="dljob-shim-") as folder:
        path = Path(folder) / "socket"
        bridge = BridgeController(theirs, api, runner, settings)
        controllers: list[BridgeController | Controller] = [bridge]
        if ours:
            _LOG.info(
                "the embedded engine reconciles kinds beside ansible-operator", extra=logs.fields(kinds=_kinds(ours))
            )
            split.write_without(watches_file, ours, Path(folder) / "watches.yaml")
            command = split.with_watches_file(command, Path(folder) / "watches.yaml")
            controllers.append(Controller(ours, api, runner, settings))
        harmful_annotations.remove_harmful(api, theirs, settings.namespaces)
        server = ShimServer(path, bridge)
        for controller in controllers:
            controller.start()
        server.start()
        checks = [server.problem, runner.problem, *(controller.problem for controller in controllers)]
        with Watchdog(checks) as watchdog:
            try:
                code = supervise.run(command, supervise.child_environ(os.environ, path), signals, watchdog.start)
            finally:
                server.stop()
                for controller in reversed(controllers):
                    controller.stop(_LAST_RUNS)
        if watchdog.problem:
            raise BridgeStuck(watchdog.problem)
        return code


def _kinds(watches: Sequence[Watch]) -> str:
    return ", ".join(str(watch.gvk) for watch in watches)


def _namespaces(options: argparse.Namespace) -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in options.namespace.split(","))))


def _frameworks(watches: Sequence[Watch]) -> dict[str, str]:
    """Each kind's framework, which is the name of its role."""
    return {target_name(watch): (watch.role or watch.playbook or Path()).stem for watch in watches}


def _run_environ(kubeconfig: Path | None, options: argparse.Namespace) -> dict[str, str]:
    """Return the environment of the runs, with the cluster under the variables that ansible-operator uses."""
    environ = {
        **os.environ,
        CLOUD_VARIABLE: options.cloud,
        CONFIG_NAMESPACE_VARIABLE: options.config_namespace,
        MAX_REPLICAS_VARIABLE: options.max_replicas_per_job,
        FORCE_DELETE_VARIABLE: options.force_delete_after_seconds,
        TERMINATION_MESSAGE_POLICY_VARIABLE: options.termination_message_policy,
        SERVICES_VARIABLE: options.services,
        GANG_SCHEDULER_VARIABLE: options.gang_scheduler_name,
        KUEUE_VARIABLE: options.kueue,
        KUBECTL_DELIVERY_VARIABLE: options.mpi_kubectl_delivery_image,
        NON_ROOT_USER_VARIABLE: options.non_root_user_id,
    }
    if kubeconfig is not None:
        environ |= {"KUBECONFIG": str(kubeconfig), "K8S_AUTH_KUBECONFIG": str(kubeconfig)}
    return environ


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dljob-operator", description="Reconcile deep-learning jobs with Ansible roles."
    )
    parser.set_defaults(preforked=None)
    parser.add_argument("--version", action="version", version=f"dljob-operator {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="watch the cluster and reconcile until stopped")
    run.set_defaults(do=_run)
    add = run.add_argument
    _add_common(run)
    add("--reconcile-period", type=parse_duration, default="10h", metavar="DURATION",
        help="reconcile jobs this often, unless watches.yaml sets it; 0s: never (default: %(default)s)")  # fmt: skip
    add("--graceful-shutdown-timeout", type=parse_duration, default="30s", metavar="DURATION",
        help="how long runs in progress may take to end (default: %(default)s)")  # fmt: skip
    add("--health-probe-bind-address", default="", metavar="ADDRESS",
        help="serve /healthz and /readyz at this address, such as :6789 (default: do not serve)")  # fmt: skip
    add("--metrics-bind-address", default="0", metavar="ADDRESS",
        help="serve /metrics at this address, such as :8080; 0: do not serve (default: %(default)s)")  # fmt: skip
    add("--metrics-tls-cert-file", type=Path, metavar="FILE",
        help="serve /metrics with TLS and this certificate (PEM), which is read again when it changes "
        "(default: no TLS)")  # fmt: skip
    add("--metrics-tls-key-file", type=Path, metavar="FILE", help="the private key of that certificate")
    add("--metrics-authentication", action="store_true",
        help="serve /metrics only to bearers of a token whose user may get the non-resource URL /metrics; needs TLS, "
        "and the rights of the ClusterRole system:auth-delegator")  # fmt: skip
    add(
        "--training-operator-metrics",
        action="store_true",
        help="count jobs under training-operator's names too, such as training_operator_jobs_created_total",
    )
    add("--selector", default="", metavar="LABELS",
        help="reconcile only jobs that match this label selector, such as a shard (default: all)")  # fmt: skip
    add("--leader-elect", action="store_true", help="reconcile only while this process holds a Lease")
    add("--leader-election-namespace", default=own_namespace(os.environ) or "default", metavar="NAME",
        help="namespace of the Lease (default: the pod's namespace, else default)")  # fmt: skip
    add("--leader-election-id", default=LEASE, metavar="NAME",
        help="name of the Lease; shards in one namespace need one each (default: %(default)s)")  # fmt: skip
    add("--leader-elect-lease-duration", type=parse_duration, default="6s", metavar="DURATION",
        help="how long after its last renewal another process may take the Lease (default: %(default)s)")  # fmt: skip
    add("--leader-elect-renew-deadline", type=parse_duration, default="4s", metavar="DURATION",
        help="how long the leader tries to renew the Lease before it ends; more where the API server is often slower "
        "than that (default: %(default)s)")  # fmt: skip
    add("--leader-elect-retry-period", type=parse_duration, default="1s", metavar="DURATION",
        help="how often the Lease is renewed, or read by a standby (default: %(default)s)")  # fmt: skip
    add("--install-crds", action="store_true", help="install the custom resource definitions first")
    add("--cleanup-on-exit", action="store_true",
        help="when stopped, delete the definitions that this process has created, and with them all their jobs; "
        "definitions that existed before stay, with their jobs")  # fmt: skip
    add("--crds-dir", type=Path, metavar="DIR",
        help="directory of the definitions (default: crds beside the watches file, else the collection's)")  # fmt: skip
    serve = commands.add_parser(
        "serve",
        help="run ansible-operator, serve its runs, and requeue jobs whose owned objects change",
        usage="dljob-operator serve [options] -- ansible-operator run [its options]",
    )
    serve.set_defaults(do=_serve)
    _add_common(serve)
    serve.add_argument("command", nargs=argparse.REMAINDER, help="the command to run, after --")
    convert.add_parser(commands)
    preflight.add_parser(commands)
    return parser


def _add_common(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--watches-file", type=Path, metavar="FILE",
        help="the file that names the role of each kind "
        "(default: ./watches.yaml, else the installed collection's)")  # fmt: skip
    add("--kubeconfig", metavar="FILE",
        help="kubeconfig file (default: KUBECONFIG, else the pod's service account, else ~/.kube/config)")  # fmt: skip
    add("--namespace", default=os.environ.get("WATCH_NAMESPACE", ""), metavar="NAMES",
        help="comma-separated namespaces to watch (default: WATCH_NAMESPACE, else all)")  # fmt: skip
    add("--cloud", type=_checked(operator_defaults.cloud), default=os.environ.get(CLOUD_VARIABLE, ""), metavar="NAME",
        help="gke or azure: mount GPU drivers as this cloud needs it if no ConfigMap tf-job-operator-config does "
        "(default: DLJOB_CLOUD, else none)")  # fmt: skip
    add("--config-namespace", default=os.environ.get(CONFIG_NAMESPACE_VARIABLE, ""), metavar="NAME",
        help="if the operator's own namespace has no ConfigMap tf-job-operator-config, read it from this one, such as "
        "default; who can write it there decides which host paths pods mount "
        f"(default: {CONFIG_NAMESPACE_VARIABLE}, else none)")  # fmt: skip
    add("--max-replicas-per-job", type=_checked(operator_defaults.positive), metavar="N",
        default=os.environ.get(MAX_REPLICAS_VARIABLE) or str(MAX_REPLICAS),
        help=f"refuse jobs with more replicas (default: {MAX_REPLICAS_VARIABLE}, else {MAX_REPLICAS})")  # fmt: skip
    add("--force-delete-after-seconds", type=_checked(operator_defaults.force_delete_after), metavar="N",
        default=os.environ.get(FORCE_DELETE_VARIABLE, ""),
        help="default of runPolicy.forceDeleteAfterSeconds: delete a pod by force this long after its grace period if "
        f"its node is lost (default: {FORCE_DELETE_VARIABLE}, else never)")  # fmt: skip
    add("--termination-message-policy", type=_checked(operator_defaults.termination_message_policy), metavar="POLICY",
        default=os.environ.get(TERMINATION_MESSAGE_POLICY_VARIABLE) or TERMINATION_MESSAGE_POLICIES[0],
        help="of containers whose template has none; FallbackToLogsOnError quotes the log of a failed container in the "
        "status of its pod and job, which needs no permission to read logs; File does not "
        f"(default: {TERMINATION_MESSAGE_POLICY_VARIABLE}, else {TERMINATION_MESSAGE_POLICIES[0]})")  # fmt: skip
    add("--services", type=_checked(operator_defaults.services), metavar="SCOPE",
        default=os.environ.get(SERVICES_VARIABLE) or SERVICES[0],
        help="of new jobs without the annotation dljob.operator/services: per-job, or per-replica for one Service a "
        "replica, as training-operator v1 creates them; per-replica doubles the objects of a job "
        f"(default: {SERVICES_VARIABLE}, else {SERVICES[0]})")  # fmt: skip
    add("--gang-scheduler-name", type=_checked(gang_scheduler), metavar="NAME",
        default=os.environ.get(GANG_SCHEDULER_VARIABLE, ""),
        help="start the pods of each job together or not at all: volcano, kubernetes (1.37 or newer with the feature "
        "gate GenericWorkload and the API scheduling.k8s.io/v1beta1, both off by default), the name of a scheduler "
        "with the coscheduling plugin, or scheduler-plugins for whatever scheduler the pods name; needs its PodGroups "
        f"(default: {GANG_SCHEDULER_VARIABLE}, else none)")  # fmt: skip
    add("--kueue", type=_checked(operator_defaults.kueue), metavar="WAY", default=os.environ.get(KUEUE_VARIABLE, ""),
        help="queue jobs of all kinds with the label kueue.x-k8s.io/queue-name: workloads, by Workloads that the "
        "operator creates for Kueue 0.16 or newer. Kueue's own integration of the kinds must be off "
        f"(default: {KUEUE_VARIABLE}, else Kueue's own integration)")  # fmt: skip
    add("--mpi-kubectl-delivery-image", type=_checked(operator_defaults.image), metavar="IMAGE",
        default=os.environ.get(KUBECTL_DELIVERY_VARIABLE) or KUBECTL_DELIVERY_IMAGE,
        help="init container that brings kubectl to the launcher of an MPIJob v1 "
        f"(default: {KUBECTL_DELIVERY_VARIABLE}, else {KUBECTL_DELIVERY_IMAGE})")  # fmt: skip
    add("--non-root-user-id", type=_checked(operator_defaults.user_id), metavar="ID",
        default=os.environ.get(NON_ROOT_USER_VARIABLE) or str(NON_ROOT_USER),
        help="user of a container that the operator adds where the job's template forbids root and names no user; "
        "none: the cluster assigns it, as OpenShift does "
        f"(default: {NON_ROOT_USER_VARIABLE}, else {NON_ROOT_USER})")  # fmt: skip
    add("--max-concurrent-reconciles", type=_count, default=2, metavar="N",
        help="number of runs at a time (default: %(default)s)")  # fmt: skip
    add("--run-timeout", type=parse_duration, default="5m", metavar="DURATION",
        help="how long a run may take before it is killed (default: %(default)s)")  # fmt: skip
    add("--log-level", type=_one_of(logs.LEVELS), metavar="LEVEL",
        default=os.environ.get(_LOG_LEVEL) or "info",
        help=f"{', '.join(logs.LEVELS)} (default: {_LOG_LEVEL}, else info)")  # fmt: skip
    add("--log-format", type=_one_of(logs.FORMATS), metavar="FORMAT",
        default=os.environ.get(_LOG_FORMAT) or "text",
        help="write log lines as a message with key=value fields (text), or as JSON (json) "
        f"(default: {_LOG_FORMAT}, else text)")  # fmt: skip


def _one_of(names: Sequence[str]) -> Callable[[str], str]:
    """An argparse type like `choices`, which argparse does not apply to a default from the environment."""

    def check(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(names)}")
        return text

    return check


def _checked(read: Callable[[str], object]) -> Callable[[str], str]:
    """An argparse type that refuses what `read` refuses, with its message, and leaves the text as it is."""

    def check(text: str) -> str:
        try:
            read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
        return text

    return check


def _count(text: str) -> int:
    return int(_checked(operator_defaults.positive)(text))
