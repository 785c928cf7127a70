"""What jobs have used: the accounts of their statuses, sums, prices, and the command."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from dljob import cli
from dljob.account import Account, Interruption, account_of, prices
from dljob.errors import Refused
from dljob.view import is_gpu
from support.builders import stamp

from .conftest import Cluster
from .test_cli import run

GPU = "nvidia.com/gpu"
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def usage(**more: Any) -> dict[str, Any]:
    """Two GPUs for an hour, of which a quarter was lost, and four cores."""
    lost = [
        {"cause": "Startup", "count": 1, "seconds": 400, "resourceSeconds": {GPU: 800}},
        {"cause": "Disruption", "count": 2, "seconds": 500, "resourceSeconds": {GPU: 1000}},
    ]
    return {
        "asOf": "2026-01-01T11:00:00Z",
        "phase": "Ended",
        "seconds": {"queued": 60, "starting": 400, "running": 2700, "restarting": 500},
        "resourceSeconds": {GPU: 7200, "cpu": 14400, "memory": 3600},
        "interruptions": lost,
        **more,
    }


def account(**more: Any) -> Account:
    found = account_of({"usage": usage(**more)}, NOW)
    assert found is not None
    return found


def test_the_account_of_a_job_that_has_ended() -> None:
    found = account()
    assert found.hours == {GPU: 2, "cpu": 4, "memory": 1}
    assert found.seconds == {"queued": 60, "starting": 400, "running": 2700, "restarting": 500}
    assert found.goodput(is_gpu) == 0.75


def test_one_that_runs_goes_on() -> None:
    found = account(phase="Running", held={GPU: 2})
    assert found.hours[GPU] == 4
    assert found.hours["cpu"] == 4
    assert found.seconds["running"] == 2700 + 3600


def test_without_accelerators_the_cores_tell_how_much_was_lost() -> None:
    lost = [{"cause": "Failure", "count": 1, "seconds": 1, "resourceSeconds": {"cpu": 3600}}]
    assert account(resourceSeconds={"cpu": 14400}, interruptions=lost).goodput(is_gpu) == 0.75
    assert account(resourceSeconds={}, interruptions=[]).goodput(is_gpu) is None
    assert account(resourceSeconds={"cpu": 1}, interruptions=lost).goodput(is_gpu) == 0


@pytest.mark.parametrize("status", [None, "x", {}, {"usage": []}, {"usage": {"asOf": 5}}, {"usage": {"asOf": "x"}}])
def test_a_status_without_one(status: Any) -> None:
    assert account_of(status, NOW) is None


def test_nonsense_in_one_counts_for_nothing() -> None:
    odd = {"resourceSeconds": {"cpu": "9", GPU: float("inf"), "memory": -1}, "seconds": [], "held": 1, "phase": 7}
    assert account(**odd, interruptions=[1, {}]) == Account(
        interruptions=(Interruption("None", 0, 0.0), Interruption("None", 0, 0.0))
    )


def test_sums() -> None:
    both = account() + account(interruptions=[])
    assert both.hours == {GPU: 4, "cpu": 8, "memory": 2}
    assert (both.jobs, both.seconds["queued"]) == (2, 120)
    assert both.interruptions[1] == Interruption("Disruption", 2, 500, {GPU: 1000 / 3600})
    assert (both + both).interruptions[1].count == 4
    assert both.goodput(is_gpu) == 0.875


def config_map(**data: str) -> dict[str, Any]:
    named = {name.replace("gpu", GPU): text for name, text in data.items()}
    return {"metadata": {"namespace": "team", "name": "prices"}, "data": named}


def test_the_cost() -> None:
    found = prices(config_map(gpu="2.5", cpu=" 0.01 ", currency="EUR"))
    assert found.currency == "EUR"
    assert account().cost(found) == pytest.approx(5.04)


@pytest.mark.parametrize("text", ["much", "-1", "NaN", "1e999999", ""])
def test_what_is_no_price(text: str) -> None:
    with pytest.raises(Refused, match=r"team/prices has .* as the price of cpu: write a number such as 2.5"):
        prices(config_map(cpu=text))


@pytest.fixture
def used(cluster: Cluster) -> Cluster:
    cluster.job("large", metadata={"labels": {"dljob.operator/user": "ada"}}, status={"usage": usage()})
    small = usage(resourceSeconds={GPU: 3600}, interruptions=[])
    cluster.job("small", "tfjobs", status={"usage": small})
    cluster.job("old")
    cluster.fake.add(("team", "configmaps"), {"apiVersion": "v1", "kind": "ConfigMap", **config_map(gpu="2.5")})
    return cluster


def test_the_table(used: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "usage")
    lines = [line.split() for line in out.splitlines()]
    assert code == 0
    assert lines[0] == [
        *("NAME", "STATE", "GPU-H", "CPU-H", "GIB-H", "QUEUED", "STARTING", "RUNNING", "RESTARTING", "GOODPUT"),
        "INTERRUPTIONS",
    ]
    assert lines[1][0] == "pytorchjobs.kubeflow.org/large"
    assert lines[1][2:] == ["2.00", "4.00", "1.00", "60s", "6m40s", "45m", "8m20s", "75.0%", "2", "Disruption"]
    assert lines[2][0] == "tfjobs.kubeflow.org/small"
    assert lines[2][-2:] == ["100.0%", "-"]
    assert err == "warning: Left out, since no operator with --usage on keeps an account of them: 1 jobs.\n"
    assert run(capsys, "usage", "-A")[1].splitlines()[1].split()[0] == "team"


def test_groups_with_prices(used: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "usage", "--by", "user", "--prices", "prices")[1]
    lines = [line.split() for line in out.splitlines()]
    assert lines[0][:3] == ["USER", "JOBS", "GPU-H"]
    assert [line[:3] for line in lines[1:]] == [["ada", "1", "2.00"], ["-", "1", "1.00"]]
    assert [line[-3] if "Disruption" in line else line[-2] for line in lines[1:]] == ["5.00", "2.50"]
    (ada, _) = json.loads(run(capsys, "usage", "--by", "user", "--prices", "team/prices", "-o", "json")[1])
    assert (ada["user"], ada["gpuHours"], ada["cost"], ada["goodput"]) == ("ada", 2, 5, 0.75)
    assert ada["interruptions"][1]["cause"] == "Disruption"


def test_a_job_has_its_account_in_the_view(used: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(capsys, "get", "large", "-o", "json")[1])
    assert found["account"]["hours"][GPU] == 2
    assert json.loads(run(capsys, "get", "old", "-o", "json")[1])["account"] is None


def test_a_job_is_described_with_what_it_has_used(used: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    said = "2.00 GPU hours, 4.00 CPU hours; goodput 75.0%; 1 Startup (6m40s); 2 Disruption (8m20s)"
    assert f"Used:       {said}" in run(capsys, "describe", "large")[1].splitlines()
    assert "Used:" not in run(capsys, "describe", "old")[1]


def test_where_no_operator_keeps_accounts(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.job("old", status={"startTime": stamp()})
    code, out, err = run(capsys, "usage")
    assert (code, out) == (0, "")
    assert err == "No operator keeps an account of such jobs: it needs the option --usage on.\n"
    assert run(capsys, "usage", "-o", "json")[1] == "[]\n"


def test_bad_input(used: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "usage", "--prices", "a/b/c")
    assert code == cli.ERROR and "'a/b/c' is no ConfigMap: write NAME or NAMESPACE/NAME." in err
    assert run(capsys, "usage", "--prices", "none")[0] == cli.NOT_FOUND
    with pytest.raises(SystemExit):
        cli.main(["usage", "--by", "node"])
    assert "an account is of a job, and not of its nodes: leave node out" in capsys.readouterr().err
