"""The alerts and the dashboard name metrics that exist, and say what to do."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import ACCELERATORS
from support import monitoring

ROOT = Path(__file__).resolve().parents[2]
RULES = monitoring.rules()
PANELS = monitoring.panels()
EXPRESSIONS = {**monitoring.of_alerts(), **monitoring.of_panels()}
BOARD = json.loads(monitoring.DASHBOARD.read_text(encoding="utf-8"))


COMPONENT = ROOT / "deploy" / "kustomize" / "components" / "monitoring"


def document(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def served() -> frozenset[str]:
    return frozenset(monitoring.Operator().names())


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_every_metric_exists(expression: str, served: frozenset[str]) -> None:
    found = monitoring.metrics_in(expression)
    assert found
    assert found <= served


def test_the_documents_have_every_metric_that_is_served(served: frozenset[str]) -> None:
    text = document("deployment.md")
    names = {re.sub(r"_(bucket|sum|count|created)$", "", name) for name in served if name.startswith("dljob_")}
    names -= {name.removesuffix("_total") for name in names if name.endswith("_total")}
    assert [name for name in sorted(names) if f"`{name}`" not in text] == []


def test_no_metric_of_jobs_is_missing_on_the_dashboard(served: frozenset[str]) -> None:
    shown = {name for expression in monitoring.of_panels().values() for name in monitoring.metrics_in(expression)}
    assert {name for name in served if re.fullmatch(r"dljob_\w+(_total|_bucket)", name)} <= shown


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_says_what_to_do(rule: dict[str, Any]) -> None:
    assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in ("critical", "warning") and set(rule["labels"]) == {"severity"}
    assert set(rule["annotations"]) == {"summary", "description"}
    assert len(rule["annotations"]["description"]) > 100
    assert f"`{rule['alert']}`" in document("troubleshooting.md")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_the_texts_name_labels_that_the_alert_has(rule: dict[str, Any]) -> None:
    """Prometheus writes an empty text for others."""
    given = re.findall(r"by \(([^)]*)\)", rule["expr"])
    labels = {one for group in given for one in re.split(r", *", group)}
    if "by (" not in rule["expr"] and "progress" in rule["expr"]:
        labels = {"namespace", "kind", "job_name"}
    used = set(re.findall(r"\$labels\.(\w+)", "".join(rule["annotations"].values())))
    assert used <= labels


def test_each_alert_is_tested_by_name() -> None:
    text = (monitoring.MONITORING / "alerts_test.yaml").read_text(encoding="utf-8")
    tests = yaml.safe_load(text)["tests"]
    for name in monitoring.of_alerts():
        about = [one for one in tests if name in str(one)]
        assert any("exp_samples" in str(one) or "exp_alerts" in str(one) for one in about), name


def test_accelerators_are_those_of_the_operator() -> None:
    alternatives = "(" + "|".join(ACCELERATORS) + ")"
    using = [one for one in EXPRESSIONS.values() if "resource=~" in one]
    assert len(using) == 4
    assert all(f'resource=~".*{alternatives}.*"' in one for one in using)


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_explains_itself(panel: dict[str, Any]) -> None:
    assert panel["title"] and panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"] in ("short", "s", "h", "percent", "ops", "bytes")
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    assert all(target["datasource"] == panel["datasource"] and target["legendFormat"] for target in panel["targets"])


def test_the_dashboard_is_grafanas() -> None:
    assert BOARD["schemaVersion"] >= 38, "Grafana 10"
    variables = {one["name"]: one["type"] for one in BOARD["templating"]["list"]}
    assert variables == {"datasource": "datasource", "namespace": "query", "kind": "query"}
    numbers = [panel["id"] for panel in BOARD["panels"]]
    assert len(set(numbers)) == len(numbers)
    rows = [panel["title"] for panel in BOARD["panels"] if panel["type"] == "row"]
    assert rows == ["Jobs", "Starts", "Durations", "Restarts", "GPUs", "Progress", "The operator"]


def test_no_panel_lies_upon_another() -> None:
    places = [panel["gridPos"] for panel in BOARD["panels"]]
    assert all(one["x"] + one["w"] <= 24 for one in places)
    for one, other in itertools.combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        assert beside or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]


def test_the_prometheus_rule_is_a_copy_of_the_alerts() -> None:
    """kustomize puts no file into an object."""
    rule = yaml.safe_load((COMPONENT / "prometheus_rule.yaml").read_text(encoding="utf-8"))
    assert rule["spec"] == yaml.safe_load(monitoring.ALERTS.read_text(encoding="utf-8"))


def test_the_config_map_is_made_from_the_dashboard_itself() -> None:
    made = yaml.safe_load((monitoring.MONITORING / "kustomization.yaml").read_text(encoding="utf-8"))
    (generator,) = made["configMapGenerator"]
    assert generator["files"] == [f"dljob-operator.json={monitoring.DASHBOARD.name}"]
    assert generator["options"]["labels"]["grafana_dashboard"] == "1"


def test_nothing_is_monitored_unless_it_is_asked_for() -> None:
    overlays = [path for path in COMPONENT.parents[1].rglob("kustomization.yaml") if path.parent != COMPONENT]
    assert [path for path in overlays if "monitoring" in str(yaml.safe_load(path.read_text(encoding="utf-8")))] == []
    values = yaml.safe_load((ROOT / "deploy" / "helm" / "dljob-operator" / "values.yaml").read_text(encoding="utf-8"))
    assert [values["metrics"][name] for name in ("serviceMonitor", "rules", "dashboard")] == [False] * 3
