"""The operator's image in a pod of the local cluster, as `make deploy` runs it. For the demo and the tests.

``python -m devtools.lab.demo.deploy up --namespace a,b`` and ``... down`` are for molecule's scenarios, which share one
operator and have their own namespaces. ``down`` keeps the CRDs, as stopping an operator process does. The last line of
the output is the result.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from devtools.definitions import load_all
from devtools.paths import ROOT
from devtools.testbed.base.settings import Settings, settings_from
from devtools.testbed.operator import OperatorError

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

    def __exit__(self, *_: object) -> None:
        if not self._keep:
            self.delete()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m devtools.lab.demo.deploy", description=__doc__)
    parser.add_argument("action", choices=("up", "down"))
    parser.add_argument(
        "--namespace", default="", metavar="NAMES", help="watched namespaces, comma-separated (default: all)"
    )
    options = parser.parse_args(argv)
    settings = settings_from()
    try:
        if options.action == "up":
            namespaces = [name for name in options.namespace.split(",") if name]
            with DeployedOperator(settings, keep=True, namespaces=namespaces) as operator:
                operator.wait_ready()
            print(operator.ready_line)
        elif settings.kubeconfig.is_file():
            DeployedOperator(settings).delete_all_but_definitions()
            print("deleted")
        else:
            print("not deployed")
    except OperatorError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
