"""deploy/monitoring by the real promtool and Prometheus: every expression, with the metrics that an operator serves."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.settings import cache_dir_from
from devtools.testbed.offline.prometheus import Prometheus, prometheus
from devtools.testbed.operator import free_port
from support import monitoring
from support.polling import until

from dljob_operator.engine.serving.metrics_server import serve_metrics

DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""No proxy for this host."""


@pytest.fixture(scope="module")
def programs() -> Prometheus:
    try:
        return prometheus(cache_dir_from(os.environ))
    except ClusterError as error:
        pytest.skip(f"Prometheus cannot be had here: {error}")


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


class Server:
    """Prometheus on this host."""

    def __init__(self, address: str) -> None:
        self._address = address

    def query(self, expression: str) -> list[Any]:
        """The series of an expression now. Raises URLError, or HTTPError for one that Prometheus refuses."""
        arguments = urllib.parse.urlencode({"query": expression})
        with DIRECT.open(f"http://{self._address}/api/v1/query?{arguments}", timeout=30) as response:
            answer = json.load(response)
        assert answer["status"] == "success" and not answer.get("warnings"), answer
        return list(answer["data"]["result"])

    def samples(self) -> int:
        """How many samples Prometheus has of a metric of the operator."""
        try:
            found = self.query("count_over_time(dljob_queue_jobs[1h])")
        except OSError:
            return 0
        return int(found[0]["value"][1]) if found else 0


@pytest.fixture(scope="module")
def server(programs: Prometheus, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """With samples of an operator from before and after jobs have ended."""
    operator = monitoring.Operator()
    folder = tmp_path_factory.mktemp("prometheus")
    address = f"127.0.0.1:{free_port()}"
    serving = serve_metrics(operator.registry, "127.0.0.1:0")
    assert serving is not None
    with ExitStack() as stack:
        stack.callback(serving.stop)
        config = folder / "prometheus.yml"
        scrape = {
            "job_name": "dljob-operator",
            "honor_labels": True,
            "static_configs": [{"targets": [f"127.0.0.1:{serving.port}"]}],
        }
        text = yaml.safe_dump({"global": {"scrape_interval": "1s"}, "scrape_configs": [scrape]})
        config.write_text(text, encoding="utf-8")
        command = [
            str(programs.server), f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={address}", "--log.level=warn",
        ]  # fmt: skip
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
        try:
            found = Server(address)
            until(lambda: found.samples() >= 2, pause=0.2)
            operator.work()
            seen = found.samples()
            until(lambda: found.samples() >= seen + 2, pause=0.2)
            yield found
        finally:
            process.terminate()
            process.wait(30)


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
