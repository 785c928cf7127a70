"""The command line: `dljob-operator run`."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import socket
import sys
import threading
import uuid
from collections.abc import Sequence
from pathlib import Path

from dljob_operator import __version__
from dljob_operator.durations import parse_duration
from dljob_operator.engine.controller import Controller, Settings
from dljob_operator.engine.crds import install_crds
from dljob_operator.engine.kube import ApiError, KubeApi, NoCluster, Unreachable, find_kubeconfig
from dljob_operator.engine.leader import LeaderElector
from dljob_operator.engine.requests import targets
from dljob_operator.warm import WarmRunner
from dljob_operator.warm.client import WarmRunnerError
from dljob_operator.watches import WatchesError, load_watches

_LOG = logging.getLogger("dljob_operator")
_FORMAT = "%(asctime)s %(levelname)-7s %(message)s"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` and return the exit code: 0, or 1 with the reason on stderr."""
    options = _parser().parse_args(argv)
    logging.basicConfig(level=options.log_level.upper(), format=_FORMAT, stream=sys.stderr)
    # A pool that is full for a moment opens one more connection and says so; it is no news to an operator's
    # user.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    try:
        return _run(options)
    except (WatchesError, NoCluster, WarmRunnerError, LeadLost, ValueError) as error:
        print(f"dljob-operator: {error}", file=sys.stderr)
    except (ApiError, Unreachable) as error:
        print(f"dljob-operator: the cluster refused: {error}", file=sys.stderr)
    return 1


class LeadLost(Exception):
    """Another operator may be at work on the same jobs."""


class _Stopping(threading.Event):
    """Set when the operator is to end; `reason` is why, where nobody asked for it."""

    reason = ""

    def because(self, reason: str) -> None:
        self.reason = reason
        self.set()


def _run(options: argparse.Namespace) -> int:
    stopping = _Stopping()
    _stop_on_signals(stopping)
    watches = load_watches(options.watches_file)
    kubeconfig = find_kubeconfig(options.kubeconfig, os.environ)
    # Ansible takes longer to load than everything else, so it begins first.
    runner = WarmRunner(targets(watches), options.max_concurrent_reconciles, _run_environ(kubeconfig))
    runner.start()
    try:
        api = KubeApi.connect(kubeconfig)
        _LOG.info("dljob-operator %s, cluster %s", __version__, api.server)
        if options.install_crds:
            install_crds(api, options.crds_dir or options.watches_file.resolve().parent / "crds")
        elector = _elector(options, api, stopping)
        if elector is not None and not _elected(elector, stopping):
            runner.close()
            return 0
        controller = Controller(
            watches,
            api,
            runner,
            Settings(
                namespaces=tuple(filter(None, (name.strip() for name in options.namespace.split(",")))),
                selector=options.selector,
                max_concurrent=options.max_concurrent_reconciles,
                reconcile_period=options.reconcile_period,
                run_timeout=options.run_timeout,
            ),
        )
        controller.start()
    except BaseException:
        runner.close()
        raise
    try:
        return _serve(controller, runner, stopping, options.graceful_shutdown_timeout)
    finally:
        if elector is not None:
            elector.stop()


def _elector(options: argparse.Namespace, api: KubeApi, stopping: _Stopping) -> LeaderElector | None:
    if not options.leader_elect:
        return None
    identity = f"{socket.gethostname()}_{uuid.uuid4()}"
    return LeaderElector(
        api, options.leader_election_namespace, identity, lambda: stopping.because("another operator leads now")
    )


def _elected(elector: LeaderElector, stopping: _Stopping) -> bool:
    """Stand by with Ansible warm; return whether to lead now, or to end."""
    elector.start()
    while not elector.elected.wait(0.1):
        if stopping.is_set():
            elector.stop()
            return False
    return True


def _serve(controller: Controller, runner: WarmRunner, stopping: _Stopping, grace: float) -> int:
    """Say when all is ready, then wait for the signal to stop."""
    problems: list[Exception] = []

    def announce() -> None:
        try:
            runner.wait_ready()
        except WarmRunnerError as error:
            problems.append(error)
            stopping.set()
            return
        watched, missing = controller.wait_ready()
        if not stopping.is_set():
            later = f" (not installed yet: {', '.join(map(str, missing))})" if missing else ""
            print(f"ready: watching {', '.join(map(str, watched)) or 'nothing'}{later}", flush=True)

    threading.Thread(target=announce, name="announce", daemon=True).start()
    stopping.wait()
    if stopping.reason:
        # Whoever leads now must find nobody at work: no grace for what runs.
        problems.append(LeadLost(stopping.reason))
    _LOG.info("stopping: no new runs, %g s for those in flight", grace)
    controller.stop(0 if problems else grace)
    if problems:
        raise problems[0]
    _LOG.info("stopped")
    return 0


def _stop_on_signals(stopping: threading.Event) -> None:
    def handle(signum: int, _frame: object) -> None:
        if stopping.is_set():  # a second one means it
            os._exit(128 + signum)
        stopping.set()

    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, handle)


def _own_namespace() -> str:
    """The namespace of the pod that this runs in, or "default"."""
    path = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
    return os.environ.get("POD_NAMESPACE") or (path.read_text().strip() if path.exists() else "default")


def _run_environ(kubeconfig: Path | None) -> dict[str, str]:
    """Return the environment of the runs: the same cluster, under the names that ansible-operator uses."""
    environ = dict(os.environ)
    if kubeconfig is not None:
        environ |= {"KUBECONFIG": str(kubeconfig), "K8S_AUTH_KUBECONFIG": str(kubeconfig)}
    return environ


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dljob-operator", description="Reconcile deep-learning jobs with warm Ansible runs."
    )
    parser.add_argument("--version", action="version", version=f"dljob-operator {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="watch the cluster and reconcile until stopped")
    add = run.add_argument
    add("--watches-file", type=Path, default=Path("watches.yaml"), metavar="FILE",
        help="which role reconciles which kind (default: %(default)s)")  # fmt: skip
    add("--kubeconfig", metavar="FILE",
        help="the cluster (default: KUBECONFIG, else the pod's own, else ~/.kube/config)")  # fmt: skip
    add("--namespace", default=os.environ.get("WATCH_NAMESPACE", ""), metavar="NAMES",
        help="namespaces to watch, with commas between (default: WATCH_NAMESPACE, else all)")  # fmt: skip
    add("--max-concurrent-reconciles", type=_positive, default=2, metavar="N",
        help="runs at a time (default: %(default)s)")  # fmt: skip
    add("--reconcile-period", type=parse_duration, default="10h", metavar="DURATION",
        help="reconcile everything this often where watches.yaml says nothing; 0s is never (%(default)s)")  # fmt: skip
    add("--run-timeout", type=parse_duration, default="5m", metavar="DURATION",
        help="how long a run may take before it is killed (default: %(default)s)")  # fmt: skip
    add("--graceful-shutdown-timeout", type=parse_duration, default="30s", metavar="DURATION",
        help="how long runs in flight may take to end (default: %(default)s)")  # fmt: skip
    add("--selector", default="", metavar="LABELS",
        help="only jobs with these labels, as kubectl takes them: a shard (default: all)")  # fmt: skip
    add("--leader-elect", action="store_true", help="work only while holding a Lease; else stand by")
    add("--leader-election-namespace", default=_own_namespace(), metavar="NAME",
        help="where the Lease is; shards need one namespace each (default: the pod's own, else default)")  # fmt: skip
    add("--install-crds", action="store_true", help="install the custom resource definitions first")
    add("--crds-dir", type=Path, metavar="DIR", help="where they are (default: crds beside the watches file)")
    add(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="(default: %(default)s)",
    )
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of 1 or more")
    return number
