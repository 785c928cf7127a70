"""The operator in the cluster: its image in a pod, as `make deploy` puts it there. For the demo and the tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

from devtools.cluster.settings import REPO_ROOT, Settings
from devtools.demo.operator_process import OperatorError

NAMESPACE = "dljob-system"
NAME = "dljob-operator"
PATIENCE = 300


class Kubectl:
    """kubectl on the local cluster."""

    def __init__(self, settings: Settings) -> None:
        path = f"{settings.bin_dir}{os.pathsep}{os.environ['PATH']}"
        self._environ = {**os.environ, "KUBECONFIG": str(settings.kubeconfig), "PATH": path}

    @property
    def environ(self) -> dict[str, str]:
        """For other programs that are to talk to the same cluster."""
        return dict(self._environ)

    def run(self, *arguments: str | Path, check: bool = True, timeout: float = PATIENCE + 30) -> str:
        """What it printed. Raises :class:`OperatorError` with all that was said where it fails."""
        done = subprocess.run(
            ["kubectl", *map(str, arguments)],
            env=self._environ,
            cwd=REPO_ROOT,
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
        """Why a deployment is not ready, as far as the cluster says."""
        parts = [
            self.run("-n", namespace, "get", "pods", "-o", "wide", check=False),
            self.run("-n", namespace, "get", "events", "--sort-by=.lastTimestamp", check=False)[-3000:],
            self.run("-n", namespace, "logs", f"deployment/{deployment}", "--tail=50", check=False),
        ]
        return "\n".join(parts)


def _overlay(settings: Settings, overlay: Path, namespaces: Sequence[str]) -> Path:
    """An overlay over `overlay` for an image that is rebuilt under one name: the node may have an older one."""
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
    """A context manager: applied with kustomize on entry, deleted on exit, with the definitions and so all jobs."""

    def __init__(
        self, settings: Settings, overlay: str | Path = "default", keep: bool = False, namespaces: Sequence[str] = ()
    ) -> None:
        """`namespaces` are the only ones that it looks at, where the overlay does not say that itself."""
        self._kubectl = Kubectl(settings)
        self._folder = _overlay(settings, REPO_ROOT / "deploy" / "kustomize" / overlay, namespaces)
        self._keep = keep
        self.ready_line = ""

    def __enter__(self) -> DeployedOperator:
        self._kubectl.run("apply", "--server-side", "--force-conflicts", "-k", self._folder)
        return self

    def wait_ready(self) -> None:
        """Until the operator's pod is ready. Raises :class:`OperatorError` with what the cluster says of it."""
        where = ("-n", NAMESPACE)
        try:
            self._kubectl.run(*where, "rollout", "status", f"deployment/{NAME}", f"--timeout={PATIENCE}s")
        except OperatorError as error:
            raise OperatorError(f"{error}\n{self._kubectl.describe(NAMESPACE)}") from None
        pods = self._kubectl.run(*where, "get", "pods", "-l", f"app.kubernetes.io/name={NAME}", "-o", "name")
        self.ready_line = f"ready: {', '.join(pods.split())} in {NAMESPACE}"

    def log(self) -> str:
        return self._kubectl.run("-n", NAMESPACE, "logs", f"deployment/{NAME}", "--tail=-1")

    def delete(self, *, wait: bool = True) -> None:
        self._kubectl.run("delete", "--ignore-not-found", f"--wait={str(wait).lower()}", "-k", self._folder)

    def delete_all_but_definitions(self) -> None:
        """The operator itself. Whoever has jobs keeps them."""
        rendered = yaml.safe_load_all(self._kubectl.run("kustomize", self._folder))
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
    """The names of what is in a namespace, with their kinds."""
    return kubectl.run("-n", namespace, "get", ",".join(kinds), "-o", "name").split()
