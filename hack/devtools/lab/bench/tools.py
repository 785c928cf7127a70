"""Programs and packages that only the peers need: pinned, from the usual registries, and cached."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path

from devtools.paths import ROOT
from devtools.testbed.base import gobuild
from devtools.testbed.base.cache import cache_entry, content_key
from devtools.testbed.base.settings import settings_from

GO = ROOT / "benchmarks" / "go"
KOPF = "kopf==1.45.2"  # the well-known Python framework for operators
PLOTS = "matplotlib==3.11.2"  # plots the growth; only the benchmark needs it
_UPSTREAM = "github.com/kubeflow/training-operator"
TRAINING_OPERATOR = gobuild.Program(
    "training-operator",
    # build the module's own program first: go names it after the folder, which is the other program's final name
    {".": "training-operator-unlimited", f"{_UPSTREAM}/cmd/training-operator.v1": "training-operator"},
)
BASELINE = gobuild.Program("baseline", {".": "baseline"})


def _cache() -> Path:
    return settings_from().cache_dir


@functools.cache
def training_operator() -> Path:
    """The folder with both programs; compiled once, which takes a few minutes on two cores."""
    return gobuild.build(_cache(), GO, TRAINING_OPERATOR)


@functools.cache
def baseline() -> Path:
    """The Go baseline's program; compiled once, with packages that the build of Kubernetes has in Go's cache."""
    return gobuild.build(_cache(), GO, BASELINE) / "baseline"


def packages(requirement: str) -> Path:
    """The folder of a Python package that only the benchmark needs, outside the project's environment."""
    return _cache() / "bench" / f"python-{content_key(requirement, sys.version)}"


def ensure(requirement: str) -> None:
    cache_entry(
        packages(requirement),
        lambda partial: subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--target", str(partial), requirement], check=True
        ),
    )
