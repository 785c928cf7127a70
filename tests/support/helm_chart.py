"""The chart as the real Helm fills it in, under the release `x` of the namespace `own`; the cluster is not asked."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import yaml
from devtools.testbed.base import gobuild
from devtools.testbed.base.settings import settings_from

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
Objects = dict[tuple[str, str], dict[str, Any]]
"""Manifests by kind and name."""


def program() -> Path:
    settings = settings_from()
    return gobuild.build(settings.cache_dir, settings.go_dir, gobuild.HELM) / "helm"


def template(helm: Path, *values: str) -> subprocess.CompletedProcess[str]:
    command = [str(helm), "template", "x", str(DEPLOY / "helm" / "dljob-operator"), "--namespace", "own"]
    for value in ("crds.install=false", *values):
        command += ["--set", value]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def objects(text: str) -> Objects:
    """Those of a stream of YAML documents."""
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(text) if one}


def rendered(helm: Path, *values: str) -> Objects:
    """The chart's."""
    done = template(helm, *values)
    assert done.returncode == 0, done.stderr
    return objects(done.stdout)
