"""What the peers need and the operator does not, from the ordinary registries, pinned, kept in the cache."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from pathlib import Path

from devtools.cluster import gobuild
from devtools.cluster.content_key import content_key
from devtools.cluster.settings import settings_from

ROOT = Path(__file__).resolve().parents[2]
GO = ROOT / "benchmarks" / "go"
KOPF = "kopf==1.45.2"  # the well-known Python framework for operators
PLOTS = "matplotlib==3.11.2"  # draws the curve of growth; whoever runs no benchmark need not have it
_UPSTREAM = "github.com/kubeflow/training-operator"
TRAINING_OPERATOR = gobuild.Program(
    "training-operator",
    # the module's own program first: go names it after the folder, as the other is to be called in the end
    {".": "training-operator-unlimited", f"{_UPSTREAM}/cmd/training-operator.v1": "training-operator"},
)


def _cache() -> Path:
    return settings_from().cache_dir


@functools.cache
def training_operator() -> Path:
    """The folder with both programs; compiled once, a few minutes on two cores."""
    return gobuild.build(_cache(), GO, TRAINING_OPERATOR)


def training_operator_sources() -> Path:
    return gobuild.module_dir(GO, "training-operator", _UPSTREAM)


def packages(requirement: str) -> Path:
    """Where a Python package is that the benchmark alone needs: beside the project's environment, never in it."""
    return _cache() / "bench" / f"python-{content_key(requirement, sys.version)}"


def ensure(requirement: str) -> None:
    target = packages(requirement)
    if not target.exists():
        partial = target.with_name(target.name + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--target", str(partial), requirement], check=True
        )
        partial.rename(target)
