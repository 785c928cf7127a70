"""deploy/monitoring by the real promtool and Prometheus: every expression, with the metrics that an operator serves."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from devtools.testbed.offline.prometheus import Prometheus
from support import monitoring
from support.prometheus import Server, scraping
from support.prometheus import programs as installed_programs

from dljob_operator.engine.serving.metrics_server import serve_metrics


@pytest.fixture(scope="module")
def programs() -> Prometheus:
    return installed_programs()


def promtool(programs: Prometheus, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(programs.promtool), *arguments]
    return subprocess.run(command, cwd=monitoring.MONITORING, capture_output=True, text=True, check=False, timeout=120)


def test_the_rules_are_valid(programs: Prometheus) -> None:
    done = promtool(programs, "check", "rules", "alerts.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(monitoring.rules())} rules found" in done.stdout


def test_each_alert_fires_and_is_silent(programs: Prometheus) -> None:
    done = promtool(programs, "test", "rules", "alerts_test.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("wrong", ["({}) and on () vector(1) == 2", "({}) or vector(1)"], ids=["never", "always"])
def test_the_tests_notice_alerts_that_fire_never_or_always(programs: Prometheus, wrong: str, tmp_path: Path) -> None:
    rules = yaml.safe_load(monitoring.ALERTS.read_text(encoding="utf-8"))
    for rule in rules["groups"][0]["rules"]:
        rule["expr"] = wrong.format(rule["expr"])
    (tmp_path / "alerts.yaml").write_text(yaml.safe_dump(rules), encoding="utf-8")
    tests = tmp_path / "alerts_test.yaml"
    tests.write_bytes((monitoring.MONITORING / tests.name).read_bytes())
    done = promtool(programs, "test", "rules", str(tests))
    assert done.returncode != 0
    assert [name for name in monitoring.of_alerts() if name not in done.stdout + done.stderr] == []


@pytest.fixture(scope="module")
def server(programs: Prometheus, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """With samples of an operator from before and after jobs have ended."""
    operator = monitoring.Operator()
    serving = serve_metrics(operator.registry, "127.0.0.1:0")
    assert serving is not None
    try:
        with scraping(programs, tmp_path_factory.mktemp("prometheus"), f"127.0.0.1:{serving.port}") as found:
            operator.work()
            found.wait_samples()
            yield found
    finally:
        serving.stop()


@pytest.mark.parametrize("expression", monitoring.of_alerts().values(), ids=monitoring.of_alerts())
def test_prometheus_evaluates_each_alert(server: Server, expression: str) -> None:
    server.query(expression)


@pytest.mark.parametrize("expression", monitoring.of_panels().values(), ids=monitoring.of_panels())
def test_each_panel_shows_something(server: Server, expression: str) -> None:
    found = server.query(expression)
    assert found
    assert all(one["value"][1] != "NaN" for one in found), "a number, not the quotient of nothing"


def test_the_labels_of_the_metrics_stay_those_of_jobs(server: Server) -> None:
    """Prometheus has a label of its own by this name: without honor_labels `namespace` is the operator's."""
    (one,) = server.query("dljob_job_progress_percent")
    assert (
        one["metric"].items() >= {"namespace": "team", "job_name": "running", "kind": "kubeflow.org/v1 TFJob"}.items()
    )


def test_a_wrong_expression_is_refused(server: Server) -> None:
    with pytest.raises(OSError, match="400"):
        server.query("sum by (kind (dljob_jobs)")
