"""The objects for the Prometheus Operator and Grafana, by the real Helm and kustomize; the cluster is not asked."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from devtools.testbed.base.settings import settings_from
from support import helm_chart, monitoring
from support.helm_chart import DEPLOY, objects, rendered, template

COMPONENTS = DEPLOY / "kustomize" / "components"
ON = ("engine=dljob-operator", "metrics.enabled=true")
ALL = ("metrics.serviceMonitor=true", "metrics.rules=true", "metrics.dashboard=true")
KINDS = ("ServiceMonitor", "PrometheusRule", "ConfigMap")


@pytest.fixture(scope="module")
def helm() -> Path:
    return helm_chart.program()


def built(folder: Path, *components: str) -> subprocess.CompletedProcess[str]:
    """The base with these components, as kubectl builds it from copies of the folders."""
    kubectl = settings_from().bin_dir / "kubectl"
    program = str(kubectl) if kubectl.exists() else shutil.which("kubectl")
    if program is None:
        pytest.skip("there is no kubectl here")
    for part in ("deploy/kustomize", "deploy/monitoring"):
        if not (folder / part).exists():
            shutil.copytree(DEPLOY.parent / part, folder / part)
    overlay = folder / "deploy/kustomize/own"
    overlay.mkdir(exist_ok=True)
    text = yaml.safe_dump({"resources": ["../base"], "components": [f"../components/{one}" for one in components]})
    (overlay / "kustomization.yaml").write_text(text, encoding="utf-8")
    return subprocess.run([program, "kustomize", str(overlay)], capture_output=True, text=True, check=False)


def test_nothing_of_it_is_installed_unless_it_is_asked_for(helm: Path) -> None:
    without = rendered(helm, *ON)
    assert not any(kind in KINDS for kind, _ in without)
    every = rendered(helm, *ON, *ALL)
    assert sorted(kind for kind, name in every.keys() - without.keys()) == sorted(KINDS)
    assert {key: one for key, one in every.items() if key in without} == without


@pytest.mark.parametrize(("value", "kind"), list(zip(ALL, KINDS, strict=True)))
def test_each_can_be_had_alone(helm: Path, value: str, kind: str) -> None:
    new = rendered(helm, *ON, value).keys() - rendered(helm, *ON).keys()
    assert [found for found, _ in new] == [kind]


@pytest.mark.parametrize("value", ALL)
@pytest.mark.parametrize("given", [("engine=ansible-operator", "metrics.enabled=true"), ("engine=dljob-operator",)])
def test_they_need_the_metrics_of_the_embedded_engine(helm: Path, given: tuple[str, ...], value: str) -> None:
    done = template(helm, *given, value)
    assert done.returncode
    assert "need metrics.enabled and engine: dljob-operator" in done.stderr


def test_the_chart_has_the_rules_and_the_dashboard_of_the_files(helm: Path) -> None:
    found = rendered(helm, *ON, *ALL)
    (group,) = found["PrometheusRule", "x-dljob-operator"]["spec"]["groups"]
    wanted = monitoring.rules()
    text = wanted[0]["annotations"]["description"]
    own = text.replace("-n dljob-system describe deployment/", "-n own describe deployment/x-")
    assert own != text, "it names the release"
    wanted[0]["annotations"]["description"] = own
    assert group == {"name": "dljob-operator", "rules": wanted}
    dashboard = found["ConfigMap", "x-dljob-operator-dashboard"]
    assert json.loads(dashboard["data"]["dljob-operator.json"]) == json.loads(monitoring.DASHBOARD.read_text())
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"


def test_the_service_monitor_selects_the_metrics_of_its_release(helm: Path) -> None:
    found = rendered(helm, *ON, *ALL, "ui.enabled=true", "progress=on")
    spec = found["ServiceMonitor", "x-dljob-operator"]["spec"]
    assert spec["endpoints"] == [{"port": "metrics", "honorLabels": True}]
    labels = spec["selector"]["matchLabels"].items()
    services = [one for (kind, _), one in found.items() if kind == "Service"]
    assert len(services) == 3
    selected = [one["metadata"]["name"] for one in services
                if labels <= one["metadata"]["labels"].items()
                and "metrics" in [port["name"] for port in one["spec"]["ports"]]]  # fmt: skip
    assert selected == ["x-dljob-operator-metrics"]


def test_tls_authentication_and_the_labels_of_a_prometheus(helm: Path) -> None:
    more = ("metrics.tlsSecret=cert", "metrics.authentication=true", "metrics.monitorLabels.release=stack")
    found = rendered(helm, *ON, *ALL, *more)
    assert found["ServiceMonitor", "x-dljob-operator"]["spec"]["endpoints"] == [
        {
            "port": "metrics",
            "honorLabels": True,
            "scheme": "https",
            "tlsConfig": {
                "ca": {"secret": {"name": "cert", "key": "ca.crt"}},
                "serverName": "x-dljob-operator-metrics.own.svc",
            },
            "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
        }
    ]
    labels = {kind: found[kind, "x-dljob-operator"]["metadata"]["labels"] for kind in KINDS[:2]}
    assert all(one["release"] == "stack" and "helm.sh/chart" in one for one in labels.values())


def test_the_component_serves_metrics_and_has_what_reads_them(tmp_path: Path) -> None:
    done = built(tmp_path, "monitoring")
    assert done.returncode == 0, done.stderr
    found = objects(done.stdout)
    (container,) = found["Deployment", "dljob-operator"]["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["--metrics-bind-address=:8080"]
    assert {"name": "DLJOB_ENGINE", "value": "dljob-operator"} in container["env"]
    (port,) = [one for one in container["ports"] if one["name"] == "metrics"]
    service = found["Service", "dljob-operator-metrics"]
    assert service["spec"]["ports"] == [{"name": "metrics", "port": port["containerPort"], "targetPort": "metrics"}]
    assert service["spec"]["selector"] == found["Deployment", "dljob-operator"]["spec"]["selector"]["matchLabels"]
    monitor = found["ServiceMonitor", "dljob-operator"]["spec"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["endpoints"] == [{"port": "metrics", "honorLabels": True}]
    dashboard = found["ConfigMap", "dljob-operator-dashboard"]
    assert dashboard["data"] == {"dljob-operator.json": monitoring.DASHBOARD.read_text(encoding="utf-8")}
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    new = [service, dashboard, *(found[kind, "dljob-operator"] for kind in KINDS[:2])]
    assert {one["metadata"]["namespace"] for one in new} == {"dljob-system"}


def test_the_component_never_takes_other_arguments_away(tmp_path: Path) -> None:
    """Two replicas without their election would both work."""
    done = built(tmp_path, "leader-election", "monitoring")
    assert done.returncode
    assert "/spec/template/spec/containers/0/args failed" in done.stderr
    found = objects(built(tmp_path, "monitoring", "leader-election").stdout)
    (container,) = found["Deployment", "dljob-operator"]["spec"]["template"]["spec"]["containers"]
    assert "--leader-elect" in container["args"]
    assert built(tmp_path, "progress", "monitoring").returncode == 0
