"""Jobs in the API flavors of the early operators.

There are two sources with the same file names: this project's own manifests in ``tests/manifests``, and the upstream
ones in the folder ``DLJOB_MANIFESTS``, if it exists. The latter are not part of this project and are applied unchanged.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from devtools.build.images.manifests import OWN_FOLDER, folders

MXJOBS = ("mxjob-linear-dist.yaml", "mx_job_dist.yaml", "dl-operator-mxjob.yaml", "mxjob-cifar-gpu.yaml")
TFJOBS = ("tf_job.yaml", "tf-smoke-gpu.yaml", "tf-tensorboard-azure.yaml", "tf-tensorboard-gke.yaml")


def paths(name: str) -> list[Path]:
    """The manifests of that name: our own and, last, the upstream one if it exists."""
    return [folder / name for folder in folders() if folder == OWN_FOLDER or (folder / name).is_file()]


def load(path: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


def from_each_source(*names: str) -> list[Any]:
    """Test parameters with the paths of the manifests of every source, for cheap tests."""
    return [
        pytest.param(path, id=f"{'own' if path.parent == OWN_FOLDER else 'upstream'}-{name}")
        for name in names
        for path in paths(name)
    ]


def preferred(name: str) -> dict[str, Any]:
    """For a test that runs a job: the upstream manifest if there is one, otherwise our own."""
    return load(paths(name)[-1])
