"""The options of `dljob-operator run` and `serve`: those of the engine alone, and all of them on a command line."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import urlsplit

from ansible_collections.dljob.operator.plugins.module_utils.shared import progress, settings
from ansible_collections.dljob.operator.plugins.module_utils.shared.settings import OneOf, Setting, positive

from dljob_operator.durations import parse_duration
from dljob_operator.log_links import LINK_FIELDS, unknown_fields


def _file(text: str) -> Path:
    if not text:
        raise ValueError("'' is no name of a file")
    return Path(text)


def _https_url(text: str) -> str:
    parts = urlsplit(text)
    if text and not (parts.scheme == "https" and parts.hostname and not parts.path.strip("/")):
        raise ValueError(f"{text!r} is not of the form https://HOST:PORT")
    return text.rstrip("/")


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in text.split(","))))


def _history_database(text: str) -> str:
    """The errors have nothing of the text but its scheme: it may have a password."""
    scheme, colon, rest = text.partition(":")
    if (
        text
        and not (scheme == "sqlite" and rest.startswith("///") and rest[3:])
        and not (scheme in ("postgresql", "postgresql+psycopg") and rest.startswith("//"))
    ):
        shown = f"{scheme}:" if colon and scheme.replace("+", "").isalnum() else "this"
        raise ValueError(f"{shown!r} is neither sqlite:////PATH nor postgresql+psycopg://USER@HOST/NAME")
    return text


def _log_link(text: str) -> str:
    if text and not text.startswith(("https://", "http://")):
        raise ValueError(f"{text!r} is no address that begins with https:// or http://")
    if unknown := unknown_fields(text):
        allowed = ", ".join(f"{{{name}}}" for name in LINK_FIELDS)
        raise ValueError(f"{text!r} names {{{unknown[0]}}}, which is none of {allowed}")
    return text


def _duration(option: str, default: str, description: str) -> Setting[float]:
    return Setting(option, parse_duration, description, default=default, metavar="DURATION")


WATCHES_FILE = Setting(
    "--watches-file",
    _file,
    "the file that names the role of each kind",
    unset="./watches.yaml, else the installed collection's",
    metavar="FILE",
)
KUBECONFIG = Setting(
    "--kubeconfig",
    str,
    "kubeconfig file",
    unset="KUBECONFIG, else the pod's service account, else ~/.kube/config",
    metavar="FILE",
)
NAMESPACE = Setting(
    "--namespace",
    _names,
    "comma-separated namespaces to watch",
    variable="WATCH_NAMESPACE",
    unset="all",
    metavar="NAMES",
    chart="watchNamespaces",
)
MAX_CONCURRENT_RECONCILES = Setting(
    "--max-concurrent-reconciles", positive, "number of runs at a time", default="2", metavar="N"
)
RUN_TIMEOUT = _duration("--run-timeout", "5m", "how long a run may take before it is killed")
LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_LEVEL = Setting(
    "--log-level",
    OneOf(LOG_LEVELS),
    ", ".join(LOG_LEVELS),
    variable="DLJOB_LOG_LEVEL",
    default="info",
    metavar="LEVEL",
    page="deployment.md#logs",
)
LOG_FORMATS = ("text", "json")
LOG_FORMAT = Setting(
    "--log-format",
    OneOf(LOG_FORMATS),
    "write log lines as a message with key=value fields (text), or as JSON (json)",
    variable="DLJOB_LOG_FORMAT",
    default="text",
    metavar="FORMAT",
    page="deployment.md#logs",
)
RECONCILE_PERIOD = _duration(
    "--reconcile-period", "10h", "reconcile jobs this often, unless watches.yaml sets it; 0s: never"
)
GRACEFUL_SHUTDOWN_TIMEOUT = _duration("--graceful-shutdown-timeout", "30s", "how long runs in progress may take to end")
HEALTH_PROBE_BIND_ADDRESS = Setting(
    "--health-probe-bind-address",
    str,
    "serve /healthz and /readyz at this address, such as :6789",
    unset="do not serve",
    metavar="ADDRESS",
    page="deployment.md#probes",
)
PROGRESS = Setting(
    "--progress",
    OneOf((progress.OFF, progress.OPT_IN, progress.ON)),
    "on: programs of all jobs may report their progress, which the job's status shows; opt-in: only where "
    "runPolicy.progress says so",
    variable="DLJOB_PROGRESS",
    default=progress.OFF,
    metavar="STATE",
    chart="progress",
    page="semantics/progress.md",
)
PROGRESS_BIND_ADDRESS = Setting(
    "--progress-bind-address",
    str,
    "take reports of progress at this address",
    default=":8444",
    metavar="ADDRESS",
    page="semantics/progress.md",
)
PROGRESS_URL = Setting(
    "--progress-url",
    _https_url,
    "where the pods of jobs reach that address, such as https://10.0.0.1:8444; in a cluster a Service of the "
    "operator's own namespace",
    variable="DLJOB_PROGRESS_URL",
    unset="https://dljob-operator-progress.<own namespace>.svc:8444",
    metavar="URL",
    page="semantics/progress.md",
)
METRICS_BIND_ADDRESS = Setting(
    "--metrics-bind-address",
    str,
    "serve /metrics at this address, such as :8080; 0: do not serve",
    default="0",
    metavar="ADDRESS",
    chart="metrics.port",
    page="deployment.md#metrics",
)
METRICS_TLS_CERT_FILE = Setting(
    "--metrics-tls-cert-file",
    _file,
    "serve /metrics with TLS and this certificate (PEM), which is read again when it changes",
    unset="no TLS",
    metavar="FILE",
    chart="metrics.tlsSecret",
    page="deployment.md#metrics",
)
METRICS_TLS_KEY_FILE = Setting(
    "--metrics-tls-key-file",
    _file,
    "the private key of that certificate",
    metavar="FILE",
    chart="metrics.tlsSecret",
    page="deployment.md#metrics",
)
METRICS_AUTHENTICATION = Setting(
    "--metrics-authentication",
    bool,
    "serve /metrics only to bearers of a token whose user may get the non-resource URL /metrics; needs TLS, and the "
    "rights of the ClusterRole system:auth-delegator",
    chart="metrics.authentication",
    page="deployment.md#metrics",
)
TRAINING_OPERATOR_METRICS = Setting(
    "--training-operator-metrics",
    bool,
    "count jobs under training-operator's names too, such as training_operator_jobs_created_total",
    page="deployment.md#metrics",
)
HISTORY_DATABASE = Setting(
    "--history-database",
    _history_database,
    "keep a history of jobs in this database: sqlite:////PATH or postgresql+psycopg://USER@HOST/NAME; a URL with a "
    "password belongs into the variable, since other processes see options",
    variable="DLJOB_HISTORY_DATABASE",
    unset="no history",
    metavar="URL",
    chart="history.databaseSecret.name",
    page="history.md",
)
HISTORY_PASSWORD_FILE = Setting(
    "--history-password-file",
    _file,
    "a file with the password of that database, which is read at each connection",
    unset="the URL's, else PGPASSWORD",
    metavar="FILE",
    page="history.md",
)
HISTORY_RETENTION_DAYS = Setting(
    "--history-retention-days",
    positive,
    "delete jobs from the history so many days after their end",
    variable="DLJOB_HISTORY_RETENTION_DAYS",
    default="365",
    metavar="N",
    chart="history.retentionDays",
    page="history.md#retention",
)
HISTORY_LOG_LINK = Setting(
    "--history-log-link",
    _log_link,
    "template of the address at which a job's logs are, such as https://logs.example.com/?q={uid}&from={started_ms}",
    variable="DLJOB_HISTORY_LOG_LINK",
    unset="no links",
    metavar="URL",
    chart="history.logLink",
    page="history.md#logs",
)
HISTORY_CLUSTER = Setting(
    "--history-cluster",
    str,
    "name of the cluster in the history, where several clusters share a database",
    variable="DLJOB_HISTORY_CLUSTER",
    unset="none",
    chart="history.cluster",
    page="history.md",
)
SELECTOR = Setting(
    "--selector",
    str,
    "reconcile only jobs that match this label selector, such as a shard",
    unset="all",
    metavar="LABELS",
    page="scaling.md#shards",
)
LEADER_ELECT = Setting(
    "--leader-elect",
    bool,
    "reconcile only while this process holds a Lease",
    chart="leaderElection.enabled",
    page="scaling.md#a-standby",
)
LEADER_ELECTION_NAMESPACE = Setting(
    "--leader-election-namespace", str, "namespace of the Lease", unset="the pod's namespace, else default"
)
LEADER_ELECTION_ID = Setting(
    "--leader-election-id", str, "name of the Lease; shards in one namespace need one each", default="dljob-operator"
)
LEADER_ELECT_LEASE_DURATION = _duration(
    "--leader-elect-lease-duration", "6s", "how long after its last renewal another process may take the Lease"
)
LEADER_ELECT_RENEW_DEADLINE = _duration(
    "--leader-elect-renew-deadline",
    "4s",
    "how long the leader tries to renew the Lease before it ends; more where the API server is often slower than that",
)
LEADER_ELECT_RETRY_PERIOD = _duration(
    "--leader-elect-retry-period", "1s", "how often the Lease is renewed, or read by a standby"
)
INSTALL_CRDS = Setting("--install-crds", bool, "install the custom resource definitions first")
CLEANUP_ON_EXIT = Setting(
    "--cleanup-on-exit",
    bool,
    "when stopped, delete the definitions that this process has created, and with them all their jobs; definitions "
    "that existed before stay, with their jobs",
)
CRDS_DIR = Setting(
    "--crds-dir",
    _file,
    "directory of the definitions",
    unset="crds beside the watches file, else the collection's",
    metavar="DIR",
)
ENGINE = Setting(
    "",
    OneOf(("ansible-operator", "dljob-operator"), "leave it empty for the image's own choice"),
    "the engine that the image's entrypoint starts; dljob-operator is the embedded one",
    variable="DLJOB_ENGINE",
    unset="ansible-operator where the image has it",
    chart="engine",
    page="deployment.md#which-engine",
)
CONCURRENCY = Setting(
    "",
    positive,
    "`--max-concurrent-reconciles` of the image's entrypoint: Ansible runs at a time over all kinds",
    variable="DLJOB_CONCURRENCY",
    default="4",
    chart="concurrency",
)

COMMON: tuple[Setting[object], ...] = (
    WATCHES_FILE,
    KUBECONFIG,
    NAMESPACE,
    MAX_CONCURRENT_RECONCILES,
    RUN_TIMEOUT,
    LOG_LEVEL,
    LOG_FORMAT,
)
"""Those of both commands, besides the settings of the runs."""
RUN: tuple[Setting[object], ...] = (
    RECONCILE_PERIOD,
    GRACEFUL_SHUTDOWN_TIMEOUT,
    HEALTH_PROBE_BIND_ADDRESS,
    PROGRESS,
    PROGRESS_BIND_ADDRESS,
    PROGRESS_URL,
    METRICS_BIND_ADDRESS,
    METRICS_TLS_CERT_FILE,
    METRICS_TLS_KEY_FILE,
    METRICS_AUTHENTICATION,
    TRAINING_OPERATOR_METRICS,
    HISTORY_DATABASE,
    HISTORY_PASSWORD_FILE,
    HISTORY_RETENTION_DAYS,
    HISTORY_LOG_LINK,
    HISTORY_CLUSTER,
    SELECTOR,
    LEADER_ELECT,
    LEADER_ELECTION_NAMESPACE,
    LEADER_ELECTION_ID,
    LEADER_ELECT_LEASE_DURATION,
    LEADER_ELECT_RENEW_DEADLINE,
    LEADER_ELECT_RETRY_PERIOD,
    INSTALL_CRDS,
    CLEANUP_ON_EXIT,
    CRDS_DIR,
)
"""Those of `run` alone."""
IMAGE: tuple[Setting[object], ...] = (ENGINE, CONCURRENCY)
"""Variables that the image's entrypoint reads."""
SETTINGS = (*COMMON, *settings.OPTIONS, *RUN, *IMAGE, *settings.VARIABLES)
"""All settings of the operator."""


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the options of both commands."""
    add_options(parser, COMMON)
    add_options(parser, settings.OPTIONS, as_text=True)


def add_options(parser: argparse.ArgumentParser, rows: Iterable[Setting[object]], *, as_text: bool = False) -> None:
    """Add an option for each row, whose default is its variable. The parser checks the values.

    With `as_text` it leaves them as they are, for the environment of the runs.
    """
    for setting in rows:
        if setting.is_flag:
            parser.add_argument(setting.option, action="store_true", help=setting.description)
            continue
        parser.add_argument(
            setting.option,
            type=_checked(setting, as_text),
            # argparse reads a text: an empty one is an error for a file, unless nothing is set
            default=setting.text(os.environ) or (None if setting.read is _file else ""),
            metavar=setting.metavar,
            help=_help(setting),
        )


def run_environ(kubeconfig: Path | None, options: argparse.Namespace) -> dict[str, str]:
    """Return the environment of the runs, with the cluster under the variables that ansible-operator uses."""
    environ = {**os.environ, **{row.variable: getattr(options, _dest(row)) for row in settings.OPTIONS}}
    environ.pop(HISTORY_DATABASE.variable, None)  # it may have a password
    if kubeconfig is not None:
        environ |= {"KUBECONFIG": str(kubeconfig), "K8S_AUTH_KUBECONFIG": str(kubeconfig)}
    return environ


def _dest(setting: Setting[object]) -> str:
    return setting.option.removeprefix("--").replace("-", "_")


def _help(setting: Setting[object]) -> str:
    default = setting.default or setting.unset
    if default and setting.variable:
        default = f"{setting.variable}, else {default}"
    return f"{setting.description} (default: {default})" if default else setting.description


def _checked(setting: Setting[object], as_text: bool) -> Callable[[str], object]:
    """An argparse type whose error has the sentence of `read`. argparse calls it for the default too."""

    def read(text: str) -> object:
        try:
            value = setting.read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
        return text if as_text else value

    return read
