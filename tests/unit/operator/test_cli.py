"""The command line's own checks."""

from __future__ import annotations

import pytest

from dljob_operator import cli
from dljob_operator.engine.settings import Settings


def test_a_controller_has_the_defaults_of_the_command_line() -> None:
    options, settings = cli._parser().parse_args(["run"]), Settings()
    assert settings.max_concurrent == options.max_concurrent_reconciles == 2
    assert settings.reconcile_period == options.reconcile_period
    assert settings.run_timeout == options.run_timeout
    assert settings.largest_batch == 25, "docs/architecture.md says so"


def test_the_cloud_reaches_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DLJOB_CLOUD", "azure")
    assert cli._parser().parse_args(["run"]).cloud == "azure"
    options = cli._parser().parse_args(["run", "--cloud", "gke"])
    assert cli._run_environ(None, options)["DLJOB_CLOUD"] == "gke"
    monkeypatch.delenv("DLJOB_CLOUD")
    assert cli._parser().parse_args(["run"]).cloud == ""


def test_a_cloud_that_there_is_not(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli._parser().parse_args(["run", "--cloud", "aws"])
    assert "'aws' is neither gke nor azure" in capsys.readouterr().err
    monkeypatch.setenv("DLJOB_CLOUD", "aws")
    with pytest.raises(SystemExit):
        cli._parser().parse_args(["run"])


def test_the_limit_of_replicas_reaches_the_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def limit(*given: str) -> str:
        return cli._run_environ(None, cli._parser().parse_args(["run", *given]))["DLJOB_MAX_REPLICAS_PER_JOB"]

    assert limit() == "20000"
    assert limit("--max-replicas-per-job", "300") == "300"
    monkeypatch.setenv("DLJOB_MAX_REPLICAS_PER_JOB", "70")
    assert limit() == "70"
    monkeypatch.setenv("DLJOB_MAX_REPLICAS_PER_JOB", "0")
    with pytest.raises(SystemExit):
        limit()
    assert "'0' is not a number of 1 or more" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        limit("--max-replicas-per-job", "")
    assert "'' is not a number of 1 or more" in capsys.readouterr().err


def test_the_time_of_a_deletion_by_force_reaches_the_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def after(*given: str) -> str:
        return cli._run_environ(None, cli._parser().parse_args(["run", *given]))["DLJOB_FORCE_DELETE_AFTER_SECONDS"]

    assert after() == ""
    assert after("--force-delete-after-seconds", "0") == "0"
    monkeypatch.setenv("DLJOB_FORCE_DELETE_AFTER_SECONDS", "300")
    assert after() == "300"
    monkeypatch.setenv("DLJOB_FORCE_DELETE_AFTER_SECONDS", "5m")
    with pytest.raises(SystemExit):
        after()
    assert "'5m' is not a number of seconds" in capsys.readouterr().err


def test_the_gang_scheduler_reaches_the_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def scheduler(*given: str) -> str:
        return cli._run_environ(None, cli._parser().parse_args(["run", *given]))["DLJOB_GANG_SCHEDULER_NAME"]

    assert scheduler() == ""
    assert scheduler("--gang-scheduler-name", "volcano") == "volcano"
    monkeypatch.setenv("DLJOB_GANG_SCHEDULER_NAME", "scheduler-plugins-scheduler")
    assert scheduler() == "scheduler-plugins-scheduler"
    assert scheduler("--gang-scheduler-name=") == ""
    with pytest.raises(SystemExit):
        scheduler("--gang-scheduler-name", "My Scheduler")
    assert "'My Scheduler' is no schedulerName; write volcano" in capsys.readouterr().err


def test_the_way_into_kueue_reaches_the_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def way(*given: str) -> str:
        return cli._run_environ(None, cli._parser().parse_args(["run", *given]))["DLJOB_KUEUE"]

    assert way() == ""
    assert way("--kueue", "workloads") == "workloads"
    monkeypatch.setenv("DLJOB_KUEUE", "workloads")
    assert way() == "workloads"
    assert way("--kueue=") == ""
    with pytest.raises(SystemExit):
        way("--kueue", "pods")
    assert "'pods' is not workloads; leave it empty for Kueue's own integration" in capsys.readouterr().err


def test_how_many_services_reaches_the_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def scope(command: str, *given: str) -> str:
        return cli._run_environ(None, cli._parser().parse_args([command, *given]))["DLJOB_SERVICES"]

    for command in ("run", "serve"):
        assert scope(command) == "per-job"
        assert scope(command, "--services", "per-replica") == "per-replica"
    monkeypatch.setenv("DLJOB_SERVICES", "per-replica")
    assert scope("serve") == "per-replica"
    assert scope("run", "--services=per-job") == "per-job"
    with pytest.raises(SystemExit):
        scope("run", "--services", "all")
    assert "argument --services: 'all' is neither per-job nor per-replica" in capsys.readouterr().err


def test_the_image_with_kubectl_reaches_the_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def image(*given: str) -> str:
        return cli._run_environ(None, cli._parser().parse_args(["run", *given]))["DLJOB_MPI_KUBECTL_DELIVERY_IMAGE"]

    assert image() == "kubeflow/kubectl-delivery:latest"
    monkeypatch.setenv("DLJOB_MPI_KUBECTL_DELIVERY_IMAGE", "mirror/kubectl:1")
    assert image() == "mirror/kubectl:1"
    assert image("--mpi-kubectl-delivery-image", "mine:2") == "mine:2"
    with pytest.raises(SystemExit):
        image("--mpi-kubectl-delivery-image", "two words")
    assert "'two words' is no name of an image" in capsys.readouterr().err


def test_the_user_of_added_containers_reaches_the_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def user(*given: str) -> str:
        return cli._run_environ(None, cli._parser().parse_args(["run", *given]))["DLJOB_NON_ROOT_USER_ID"]

    assert user() == "65534"
    monkeypatch.setenv("DLJOB_NON_ROOT_USER_ID", "none")
    assert user() == "none"
    assert user("--non-root-user-id", "1000") == "1000"
    with pytest.raises(SystemExit):
        user("--non-root-user-id", "0")
    assert "'0' is neither none nor a user id from 1 to 2147483647" in capsys.readouterr().err


def test_another_namespace_of_the_config_map_reaches_the_runs_and_the_engine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def named(*given: str) -> str:
        return cli._run_environ(None, cli._parser().parse_args(["run", *given]))["DLJOB_CONFIG_NAMESPACE"]

    assert named() == ""
    monkeypatch.setenv("DLJOB_CONFIG_NAMESPACE", "default")
    assert named() == "default"
    assert named("--config-namespace", "ml") == "ml"
    assert named("--config-namespace", "") == ""
    assert cli.main(["run", "--config-namespace", "a/b"]) == 1
    assert "DLJOB_CONFIG_NAMESPACE: 'a/b' is not the name of a namespace" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "variable", "default", "other", "said"),
    [
        ("--log-level", "DLJOB_LOG_LEVEL", "info", "debug", "'other' is none of debug, info, warning, error"),
        ("--log-format", "DLJOB_LOG_FORMAT", "text", "json", "'other' is none of text, json"),
    ],
)
@pytest.mark.parametrize("command", [["run"], ["serve", "--", "ansible-operator"]], ids=lambda command: command[0])
def test_the_log_is_set_by_an_option_or_a_variable(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
    option: str,
    variable: str,
    default: str,
    other: str,
    said: str,
) -> None:
    """The image's entrypoint passes its arguments to ansible-operator, so there a variable is the only way."""

    def value(*given: str) -> object:
        return getattr(cli._parser().parse_args([command[0], *given, *command[1:]]), option[2:].replace("-", "_"))

    monkeypatch.delenv(variable, raising=False)
    assert (value(), value(option, other)) == (default, other)
    monkeypatch.setenv(variable, "")
    assert value() == default
    monkeypatch.setenv(variable, other)
    assert (value(), value(option, default)) == (other, default)
    monkeypatch.setenv(variable, "other")
    with pytest.raises(SystemExit):
        value()
    assert f"argument {option}: {said}" in capsys.readouterr().err


def test_whether_logs_are_quoted_reaches_the_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def policy(*given: str) -> str:
        return cli._run_environ(None, cli._parser().parse_args(["run", *given]))["DLJOB_TERMINATION_MESSAGE_POLICY"]

    assert policy() == "FallbackToLogsOnError"
    assert policy("--termination-message-policy", "File") == "File"
    monkeypatch.setenv("DLJOB_TERMINATION_MESSAGE_POLICY", "File")
    assert policy() == "File"
    monkeypatch.setenv("DLJOB_TERMINATION_MESSAGE_POLICY", "file")
    with pytest.raises(SystemExit):
        policy()
    assert "'file' is neither FallbackToLogsOnError nor File" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        policy("--termination-message-policy", "")
    assert "'' is neither FallbackToLogsOnError nor File" in capsys.readouterr().err
