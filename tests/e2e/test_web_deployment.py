"""The web page in a pod, by the kustomize component: without rights of its own, with those of the viewer's token."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from devtools.build.images import build_and_push
from devtools.testbed.base import gobuild
from devtools.testbed.base.settings import settings_from
from devtools.testbed.cluster import lifecycle
from support.live_jobs import Cluster, config_of_user, kubectl, v1_job

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
COMPONENT = DEPLOY / "kustomize" / "components" / "ui"
HOST = "localhost:8080"
NAME = "dljob-ui"


@pytest.fixture
def deployed(own: Cluster, tmp_path: Path) -> Cluster:
    """A namespace of the level `restricted` with the page."""
    build_and_push(settings_from(), ["operator"])
    label = {"pod-security.kubernetes.io/enforce": "restricted"}
    own.core.patch_namespace(own.namespace, {"metadata": {"labels": label}})
    # the node may have an older build of the image
    patch = '[{"op": "add", "path": "/spec/template/spec/containers/0/imagePullPolicy", "value": "Always"}]'
    overlay = {
        "namespace": own.namespace,
        "components": [os.path.relpath(COMPONENT, tmp_path)],
        "patches": [{"target": {"kind": "Deployment"}, "patch": patch}],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    kubectl(own, "apply", "--server-side", "-k", str(tmp_path))
    try:
        kubectl(own, "rollout", "status", f"deployment/{NAME}", "--timeout=120s")
    except AssertionError as e:
        raise AssertionError(
            f"{e}\n{kubectl(own, 'describe', 'pods')}\n{kubectl(own, 'logs', f'deployment/{NAME}')}"
        ) from e
    return own


@contextmanager
def browser(here: Cluster, **headers: str) -> Iterator[httpx2.Client]:
    """A browser behind `kubectl port-forward`."""
    command = [str(here.kubeconfig.parent / "bin" / "kubectl"), "--kubeconfig", str(here.kubeconfig)]
    command += ["-n", here.namespace, "port-forward", f"service/{NAME}", ":80"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            (port,) = re.findall(r"127\.0\.0\.1:(\d+)", process.stdout.readline())
            address = f"http://127.0.0.1:{port}"
            with httpx2.Client(base_url=address, headers={"Host": HOST, **headers}, timeout=60) as made:
                yield made
        finally:
            process.terminate()


def test_the_page_in_a_pod(deployed: Cluster) -> None:
    deployed.create(v1_job("digits"))
    config_of_user(deployed, "viewer", ["get", "list", "watch"])
    token = kubectl(deployed, "create", "token", "viewer").strip()
    page = f"/jobs/{deployed.namespace}/mxjobs.kubeflow.org/digits"
    with browser(deployed) as stranger:
        assert stranger.get("/healthz").text == "ok\n"
        assert stranger.get(page).status_code == 401 and "Log in" in stranger.get("/").text
        assert stranger.get("/", headers={"Host": "evil.example"}).status_code == 421
        (key,) = re.findall(r'name="key" value="([^"]+)"', stranger.get("/login").text)
        entered = stranger.post("/login", data={"key": key, "token": token, "to": page})
        assert (entered.status_code, entered.headers["location"]) == (303, page)
        text = stranger.get(page).text
        assert "<h1>digits</h1>" in text and token not in text
    with browser(deployed, Authorization=f"Bearer {token}") as viewer:
        overview = viewer.get("/", params={"namespace": deployed.namespace}).text
        assert page in overview and token not in overview
        assert viewer.get("/", params={"namespace": "default"}).text.count("You may not list and watch jobs") == 1
    assert token not in kubectl(deployed, "logs", f"deployment/{NAME}")


def test_its_pod_has_no_rights(deployed: Cluster) -> None:
    account = f"system:serviceaccount:{deployed.namespace}:{NAME}"
    rights = kubectl(deployed, "auth", "can-i", "--list", "--as", account)
    assert "jobs" not in rights and "pods" not in rights and "secrets" not in rights
    script = "ls /var/run/secrets/kubernetes.io 2>&1; touch /x 2>&1; id -u"
    said = kubectl(deployed, "exec", f"deployment/{NAME}", "--", "sh", "-c", script).split("\n")
    assert "No such file or directory" in said[0] and "Read-only file system" in said[1] and said[2] == "1001"


def test_the_chart_has_the_same_pod(cluster: Path) -> None:
    settings = settings_from()
    session, _ = lifecycle.existing(settings)
    with session.report.step("build helm", "helm") as step:
        helm = gobuild.build(settings.cache_dir, settings.go_dir, gobuild.HELM, step) / "helm"

    def rendered(*words: str) -> list[dict[str, Any]]:
        command = [helm, "template", "x", DEPLOY / "helm" / "dljob-operator", *words]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        return [one for one in yaml.safe_load_all(done.stdout) if one]

    assert NAME not in str(rendered())
    (account, service, deployment) = rendered("--set", "ui.enabled=true", "--show-only", "templates/ui.yaml")
    pod = deployment["spec"]["template"]["spec"]
    assert pod.pop("serviceAccountName") == account["metadata"]["name"] == "x-dljob-operator-ui"
    labels = deployment["spec"]["template"]["metadata"]["labels"].items()
    assert service["spec"]["selector"].items() <= labels
    assert deployment["spec"]["selector"]["matchLabels"].items() <= labels
    wanted = yaml.safe_load((COMPONENT / "deployment.yaml").read_text())["spec"]["template"]["spec"]
    del wanted["serviceAccountName"]
    wanted["containers"][0]["imagePullPolicy"] = "IfNotPresent"
    assert pod == wanted
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    (*_, deployment) = rendered("--set", "ui.enabled=true,ui.hosts={jobs.example.com}", "-s", "templates/ui.yaml")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["args"] == ["--host=jobs.example.com"]
    behind = [
        "--set",
        "ui.enabled=true,ui.ingress.enabled=true,ui.ingress.className=internal,ui.ingress.tlsSecret=cert",
    ]
    (*_, ingress) = rendered(*behind, "--set", "ui.hosts={a.example.com,b.example.com}", "-s", "templates/ui.yaml")
    assert ingress["kind"] == "Ingress" and ingress["spec"]["ingressClassName"] == "internal"
    hosts = ["a.example.com", "b.example.com"]
    assert ingress["spec"]["tls"] == [{"hosts": hosts, "secretName": "cert"}]
    assert [one["host"] for one in ingress["spec"]["rules"]] == hosts
    (path,) = ingress["spec"]["rules"][0]["http"]["paths"]
    named = {"name": service["metadata"]["name"], "port": {"name": service["spec"]["ports"][0]["name"]}}
    assert path["backend"]["service"] == named
    refused = subprocess.run(
        [helm, "template", "x", DEPLOY / "helm" / "dljob-operator", *behind], stderr=subprocess.PIPE, text=True
    )
    assert refused.returncode and "hosts" in refused.stderr
