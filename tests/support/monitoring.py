"""The alerts and the dashboard of deploy/monitoring, and an operator's metrics that have every series."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from dljob_operator.engine.cache.predicates import Change
from dljob_operator.engine.progress.board import ProgressBoard
from dljob_operator.engine.progress.report import Report
from dljob_operator.engine.progress.reporter import Reporter
from dljob_operator.engine.serving.metrics import Metrics
from dljob_operator.engine.serving.progress.metrics import ProgressMetrics

MONITORING = Path(__file__).resolve().parents[2] / "deploy" / "monitoring"
ALERTS = MONITORING / "alerts.yaml"
DASHBOARD = MONITORING / "dashboard.json"
KIND = "kubeflow.org/v1 TFJob"
_GPU = "nvidia.com/gpu"
_VARIABLES = {"$namespace": ".*", "$kind": ".*", "$__rate_interval": "1m"}
"""What Grafana replaces, with all namespaces and kinds chosen."""


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    return list(group["rules"])


def panels() -> list[dict[str, Any]]:
    """The panels of the dashboard, without the rows."""
    found = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return [panel for panel in found if panel["type"] != "row"]


def of_alerts() -> dict[str, str]:
    """The expressions by the names of the alerts."""
    return {rule["alert"]: rule["expr"] for rule in rules()}


def of_panels() -> dict[str, str]:
    """The expressions by panel and target, with the values of the variables."""
    found = {}
    for panel in panels():
        for target in panel["targets"]:
            expression = target["expr"]
            for name, value in _VARIABLES.items():
                expression = expression.replace(name, value)
            found[f"{panel['title']} {target['refId']}"] = expression
    return found


def metrics_in(expression: str) -> set[str]:
    """The names of the metrics of an expression."""
    return set(re.findall(r"\b(?:dljob|process)_\w+", expression))


class Operator:
    """Metrics that an operator serves, of jobs that `work` lets end."""

    def __init__(self) -> None:
        began = datetime.now(UTC) - timedelta(hours=1)
        times = [began]
        self._metrics = Metrics(lambda: times[-1])
        self._metrics.watch(lambda: 3)
        times.append(began + timedelta(hours=1))
        self._began = began
        self._ended = 0
        board = ProgressBoard()
        board.report(
            Reporter("running", "team", "kubeflow.org/v1 TFJob", "running", "p", "worker-0", "n", is_first=True),
            Report(45, 90),
        )
        self.registry = self._metrics.registry
        self.registry.register(ProgressMetrics(board))
        self._changed(None, self._job("running", "Running"))
        waits = self._job("waits", "Running")
        waits["status"] |= {"conditions": [], "reason": "exceeded quota"}
        self._changed(None, waits)
        self.work()

    def work(self) -> None:
        """Let a job succeed, one fail and one be deleted, after restarts."""
        for state in ("Succeeded", "Failed"):
            self._ended += 1
            name = f"job-{self._ended}"
            running, ended = self._job(name, "Running"), self._job(name, state, grown=self._ended)
            self._changed(None, running)
            self._changed(running, ended)
            self._changed(ended, None)
        for ok in (True, False):
            self._metrics.reconciled(KIND, ok=ok)
        self._metrics.ran(KIND, 0.2)

    def names(self) -> Iterator[str]:
        """The names of the samples: with _total, _bucket, _sum and _count."""
        for family in self.registry.collect():
            for sample in family.samples:
                yield sample.name

    def _changed(self, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        self._metrics.job_changed(KIND, Change(old, new))

    def _job(self, name: str, state: str, grown: int = 0) -> dict[str, Any]:
        status: dict[str, Any] = {
            "state": state,
            "startTime": self._at(1),
            "conditions": [{"type": "Running", "status": "True", "lastTransitionTime": self._at(2)}],
            "retries": {"worker-0": grown},
            "usage": {
                "resourceSeconds": {_GPU: 3600 * grown},
                "seconds": {"running": 3600 * grown, "restarting": 60 * grown},
                "interruptions": [
                    {
                        "cause": "Failure",
                        "count": grown,
                        "seconds": 60 * grown,
                        "resourceSeconds": {_GPU: 480 * grown},
                    }
                ],
                "held": {_GPU: 8},
            },
        }
        if state != "Running":
            status["completionTime"] = self._at(30)
        metadata = {"namespace": "team", "name": name, "uid": name, "creationTimestamp": self._at(0)}
        return {"metadata": metadata, "status": status}

    def _at(self, minutes: int) -> str:
        return (self._began + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
