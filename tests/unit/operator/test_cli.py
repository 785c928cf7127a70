"""The command line's options, each by itself, by its variable, and in the environment of the runs."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared import settings

from dljob_operator import cli, options
from dljob_operator.engine.controller_settings import ControllerSettings

COMMANDS = (["run"], ["serve", "--", "ansible-operator"])
DURATION = "'x' is not a duration; write a Go duration such as"


class Case(NamedTuple):
    """What an option makes of no text, of a right one and of a wrong one."""

    option: str
    variable: str
    default: object
    right: str
    value: object
    wrong: str = ""
    said: str = ""


OF_THE_RUNS = [
    Case("--cloud", "DLJOB_CLOUD", "", "gke", "gke", "aws", "'aws' is neither gke nor azure"),
    Case("--config-namespace", "DLJOB_CONFIG_NAMESPACE", "", "ml", "ml", "a/b", "'a/b' is not the name of a namespace"),
    Case("--max-replicas-per-job", "DLJOB_MAX_REPLICAS_PER_JOB", "20000", "300", "300", "0",
        "'0' is not a number of 1 or more"),
    Case("--force-delete-after-seconds", "DLJOB_FORCE_DELETE_AFTER_SECONDS", "", "0", "0", "5m",
        "'5m' is not a number of seconds; leave it empty for never"),
    Case("--termination-message-policy", "DLJOB_TERMINATION_MESSAGE_POLICY", "FallbackToLogsOnError", "File", "File",
        "file", "'file' is neither FallbackToLogsOnError nor File"),
    Case("--services", "DLJOB_SERVICES", "per-job", "per-replica", "per-replica", "all",
        "'all' is neither per-job nor per-replica"),
    Case("--gang-scheduler-name", "DLJOB_GANG_SCHEDULER_NAME", "", "volcano", "volcano", "My Scheduler",
        "'My Scheduler' is no schedulerName; write volcano"),
    Case("--kueue", "DLJOB_KUEUE", "", "workloads", "workloads", "pods",
        "'pods' is not workloads; leave it empty for Kueue's own integration"),
    Case("--usage", "DLJOB_USAGE", "off", "on", "on", "yes", "'yes' is neither off nor on"),
    Case("--mpi-kubectl-delivery-image", "DLJOB_MPI_KUBECTL_DELIVERY_IMAGE", "kubeflow/kubectl-delivery:latest",
        "mine:2", "mine:2", "two words", "'two words' is no name of an image"),
    Case("--non-root-user-id", "DLJOB_NON_ROOT_USER_ID", "65534", "none", "none", "0",
        "'0' is neither none nor a user id from 1 to 2147483647"),
]  # fmt: skip
"""They keep their text, which the runs get by the variable."""
OF_BOTH = [
    Case("--watches-file", "", None, "w.yaml", Path("w.yaml")),
    Case("--kubeconfig", "", "", "k", "k"),
    Case("--namespace", "WATCH_NAMESPACE", (), "a, b,", ("a", "b")),
    Case("--max-concurrent-reconciles", "", 2, "7", 7, "0", "'0' is not a number of 1 or more"),
    Case("--run-timeout", "", 300.0, "1m", 60.0, "x", DURATION),
    Case("--log-level", "DLJOB_LOG_LEVEL", "info", "debug", "debug", "other",
        "'other' is none of debug, info, warning, error"),
    Case("--log-format", "DLJOB_LOG_FORMAT", "text", "json", "json", "other", "'other' is neither text nor json"),
]  # fmt: skip
OF_RUN = [
    Case("--reconcile-period", "", 36_000.0, "0s", 0.0, "x", DURATION),
    Case("--graceful-shutdown-timeout", "", 30.0, "1s", 1.0, "x", DURATION),
    Case("--health-probe-bind-address", "", "", ":6789", ":6789"),
    Case("--progress", "DLJOB_PROGRESS", "off", "opt-in", "opt-in", "yes", "'yes' is none of off, opt-in, on"),
    Case("--progress-bind-address", "", ":8444", ":9000", ":9000"),
    Case(
        "--progress-url",
        "DLJOB_PROGRESS_URL",
        "",
        "https://10.0.0.1:8444/",
        "https://10.0.0.1:8444",
        "http://a:1",
        "'http://a:1' is not of the form https://HOST:PORT",
    ),
    Case("--metrics-bind-address", "", "0", ":8080", ":8080"),
    Case("--metrics-tls-cert-file", "", None, "c.pem", Path("c.pem")),
    Case("--metrics-tls-key-file", "", None, "k.pem", Path("k.pem")),
    Case("--metrics-authentication", "", False, "", True),
    Case("--training-operator-metrics", "", False, "", True),
    Case(
        "--history-database",
        "DLJOB_HISTORY_DATABASE",
        "",
        "sqlite:////h.db",
        "sqlite:////h.db",
        "mysql://u:geheim@h/d",
        "'mysql:' is neither sqlite:////PATH nor postgresql+psycopg://USER@HOST/NAME",
    ),
    Case("--history-password-file", "", None, "p", Path("p")),
    Case(
        "--history-retention-days",
        "DLJOB_HISTORY_RETENTION_DAYS",
        365,
        "30",
        30,
        "0",
        "'0' is not a number of 1 or more",
    ),
    Case(
        "--history-log-link",
        "DLJOB_HISTORY_LOG_LINK",
        "",
        "https://l/{uid}",
        "https://l/{uid}",
        "https://l/{pod}",
        "'https://l/{pod}' names {pod}, which is none of {namespace}, {name}, {uid}, {started}, {ended}",
    ),
    Case("--history-cluster", "DLJOB_HISTORY_CLUSTER", "", "lab", "lab"),
    Case("--selector", "", "", "a=b", "a=b"),
    Case("--leader-elect", "", False, "", True),
    Case("--leader-election-namespace", "", "", "ops", "ops"),
    Case("--leader-election-id", "", "dljob-operator", "b", "b"),
    Case("--leader-elect-lease-duration", "", 6.0, "15s", 15.0, "x", DURATION),
    Case("--leader-elect-renew-deadline", "", 4.0, "10s", 10.0, "x", DURATION),
    Case("--leader-elect-retry-period", "", 1.0, "2s", 2.0, "x", DURATION),
    Case("--install-crds", "", False, "", True),
    Case("--cleanup-on-exit", "", False, "", True),
    Case("--crds-dir", "", None, "crds", Path("crds")),
]


def value(command: list[str], case: Case, *given: str) -> object:
    return getattr(cli.parse([command[0], *given, *command[1:]]), case.option[2:].replace("-", "_"))


def test_the_cases_are_all_settings() -> None:
    """An option, a variable or a default that changes is one that users have set."""
    for cases, rows in (
        (OF_THE_RUNS, settings.OPTIONS),
        (OF_BOTH, options.COMMON),
        (OF_RUN, options.RUN),
    ):
        assert [case[:2] for case in cases] == [(row.option, row.variable) for row in rows]
    others = [(row.option, row.variable) for row in (*options.IMAGE, *settings.VARIABLES)]
    variables = ("DLJOB_ENGINE", "DLJOB_CONCURRENCY", "CUSTOM_CLUSTER_DOMAIN", "DLJOB_FRAMEWORKS")
    assert others == [("", name) for name in variables]


CASES = [
    *((command, case) for command in COMMANDS for case in (*OF_THE_RUNS, *OF_BOTH)),
    *((COMMANDS[0], case) for case in OF_RUN),
]


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in filter(None, (row.variable for row in options.SETTINGS)):
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize(("command", "case"), CASES, ids=lambda one: one[0])
def test_an_option_precedes_its_variable_and_an_empty_variable_is_none(
    monkeypatch: pytest.MonkeyPatch, command: list[str], case: Case
) -> None:
    given = [f"{case.option}={case.right}"] if case.right else [case.option]
    assert (value(command, case), value(command, case, *given)) == (case.default, case.value)
    if case.variable:
        monkeypatch.setenv(case.variable, "")
        assert value(command, case) == case.default
        monkeypatch.setenv(case.variable, case.right)
        assert value(command, case) == case.value
        monkeypatch.setenv(case.variable, case.wrong or "other")
        assert value(command, case, *given) == case.value


@pytest.mark.parametrize(("command", "case"), [one for one in CASES if one[1].wrong], ids=lambda one: one[0])
def test_a_wrong_value_is_refused_with_what_is_allowed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: list[str], case: Case
) -> None:
    with pytest.raises(SystemExit):
        value(command, case, f"{case.option}={case.wrong}")
    assert f"argument {case.option}: {case.said}" in capsys.readouterr().err
    if case.variable:
        monkeypatch.setenv(case.variable, case.wrong)
        with pytest.raises(SystemExit):
            value(command, case)
        assert f"argument {case.option}: {case.said}" in capsys.readouterr().err


@pytest.mark.parametrize("case", OF_THE_RUNS, ids=lambda case: case.option)
def test_the_runs_get_the_text_of_the_option(monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    def passed(*given: str) -> str:
        return options.run_environ(None, cli.parse(["run", *given]))[case.variable]

    assert passed() == case.default
    monkeypatch.setenv(case.variable, case.right)
    assert passed() == case.right
    if not case.default:
        assert passed(f"{case.option}=") == ""
    monkeypatch.delenv(case.variable)
    assert passed(case.option, case.right) == case.right


def test_the_runs_need_no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DLJOB_HISTORY_DATABASE", "postgresql+psycopg://u:geheim@h/d")
    assert "DLJOB_HISTORY_DATABASE" not in options.run_environ(None, cli.parse(["run"]))


@pytest.mark.parametrize("text", ["sqlite:///", "geheim", "ftp geheim:x"])
def test_an_error_does_not_show_the_password_of_a_database(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    monkeypatch.setenv("DLJOB_HISTORY_DATABASE", text)
    with pytest.raises(SystemExit):
        cli.parse(["run"])
    assert "geheim" not in capsys.readouterr().err


def test_a_link_to_logs_is_an_address(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.parse(["run", "--history-log-link=javascript:{uid}"])
    assert "is no address that begins with https:// or http://" in capsys.readouterr().err


def test_the_runs_get_the_cluster_of_the_engine() -> None:
    environ = options.run_environ(Path("/k"), cli.parse(["run"]))
    assert environ["KUBECONFIG"] == environ["K8S_AUTH_KUBECONFIG"] == "/k"


def test_a_controller_has_the_defaults_of_the_command_line() -> None:
    parsed, made = cli.parse(["run"]), ControllerSettings()
    assert made.max_concurrent == parsed.max_concurrent_reconciles == 2
    assert made.reconcile_period == parsed.reconcile_period
    assert made.run_timeout == parsed.run_timeout
    assert made.largest_batch == 25, "docs/architecture.md says so"


@pytest.mark.parametrize(
    "option",
    [
        *("--watches-file", "--metrics-tls-cert-file", "--metrics-tls-key-file", "--crds-dir"),
        "--history-password-file",
    ],
)
def test_an_empty_name_of_a_file_is_not_taken_for_none(capsys: pytest.CaptureFixture[str], option: str) -> None:
    """A variable that is empty by mistake must not serve metrics without TLS."""
    with pytest.raises(SystemExit):
        cli.parse(["run", f"{option}="])
    assert f"argument {option}: '' is no name of a file" in capsys.readouterr().err
