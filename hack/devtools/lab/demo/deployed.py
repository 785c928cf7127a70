"""Runs the operator's image in a pod, as `make deploy` does. For the demo and the tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

from devtools.definitions import load_all
from devtools.lab.demo.operator_process import OperatorError
from devtools.paths import ROOT
from devtools.testbed.base.settings import Settings

NAMESPACE = "dljob-system"
NAME = "dljob-operator"
TIMEOUT = 300


class Kubectl:
    """kubectl on the local cluster."""

    def __init__(self, settings: Settings) -> None:
        path = f"{settings.bin_dir}{os.pathsep}{os.environ['PATH']}"
        self._environ = {**os.environ, "KUBECONFIG": str(settings.kubeconfig), "PATH": path}

    @property
    def environ(self) -> dict[str, str]:
        """The environment for other programs that use the same cluster."""
        return dict(self._environ)

    def run(self, *arguments: str | Path, check: bool = True, timeout: float = TIMEOUT + 30) -> str:
        """Run kubectl and return its output. Raises :class:`OperatorError` with the output and errors if it fails."""
        done = subprocess.run(
            ["kubectl", *map(str, arguments)],
            env=self._environ,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if check and done.returncode != 0:
            raise OperatorError(f"kubectl {' '.join(map(str, arguments))}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def describe(self, namespace: str, deployment: str = NAME) -> str:
        """The objects, events and logs that explain why a deployment is not ready."""
        parts = [
            self.run("-n", namespace, "get", "pods", "-o", "wide", check=False),
            self.run("-n", namespace, "get", "events", "--sort-by=.lastTimestamp", check=False)[-3000:],
            self.run("-n", namespace, "logs", f"deployment/{deployment}", "--tail=50", check=False),
        ]
        return "\n".join(parts)


def _overlay(settings: Settings, overlay: Path, namespaces: Sequence[str]) -> Path:
    """A kustomize overlay on `overlay` that always pulls the image, since the node may have an older build of it."""
    folder = settings.state_dir / "deploy"
    folder.mkdir(parents=True, exist_ok=True)
    container: dict[str, Any] = {"name": "operator", "imagePullPolicy": "Always"}
    if namespaces:
        container["env"] = [{"name": "WATCH_NAMESPACE", "value": ",".join(namespaces)}]
    patch = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }
    document = {"resources": [os.path.relpath(overlay, folder)], "patches": [{"patch": yaml.safe_dump(patch)}]}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    return folder


class DeployedOperator:
    """A context manager that applies the overlay and, on exit, deletes it with the CRDs and therefore all jobs."""

    def __init__(
        self, settings: Settings, overlay: str | Path = "default", keep: bool = False, namespaces: Sequence[str] = ()
    ) -> None:
        """`namespaces`: the namespaces to watch, if the overlay does not set them."""
        self._kubectl = Kubectl(settings)
        self._folder = _overlay(settings, ROOT / "deploy" / "kustomize" / overlay, namespaces)
        self._keep = keep
        self.ready_line = ""

    def __enter__(self) -> DeployedOperator:
        self._kubectl.run("apply", "--server-side", "--force-conflicts", "-k", self._folder)
        return self

    def wait_ready(self) -> None:
        """Wait until the operator's pod is ready. Raises :class:`OperatorError` with the deployment's description."""
        where = ("-n", NAMESPACE)
        try:
            self._kubectl.run(*where, "rollout", "status", f"deployment/{NAME}", f"--timeout={TIMEOUT}s")
        except OperatorError as error:
            raise OperatorError(f"{error}\n{self._kubectl.describe(NAMESPACE)}") from None
        pods = self._kubectl.run(*where, "get", "pods", "-l", f"app.kubernetes.io/name={NAME}", "-o", "name")
        self.ready_line = f"ready: {', '.join(pods.split())} in {NAMESPACE}"

    def log(self) -> str:
        return self._kubectl.run("-n", NAMESPACE, "logs", f"deployment/{NAME}", "--tail=-1")

    def delete(self, *, wait: bool = True) -> None:
        self._kubectl.run("delete", "--ignore-not-found", f"--wait={str(wait).lower()}", "-k", self._folder)

    def delete_all_but_definitions(self) -> None:
        """Delete the operator and keep the CRDs, and with them the jobs."""
        rendered = load_all(self._kubectl.run("kustomize", self._folder))
        kept = [one for one in rendered if one["kind"] != "CustomResourceDefinition"]
        file = self._folder / "operator.yaml"
        file.write_text(yaml.safe_dump_all(kept), encoding="utf-8")
        self._kubectl.run("delete", "--ignore-not-found", "--wait", "-f", file)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._keep:
            self.delete()


def namespaced_objects(kubectl: Kubectl, namespace: str, kinds: Sequence[str]) -> list[str]:
    """The kinds and names of the objects in a namespace."""
    return kubectl.run("-n", namespace, "get", ",".join(kinds), "-o", "name").split()
