"""The manifests of the early operators. They are their authors' and stay outside the tree; tests apply them verbatim."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(os.environ.get("DLJOB_MANIFESTS") or ROOT.parent / "shared" / "manifests")

MXJOBS = ("mxjob-linear-dist.yaml", "mx_job_dist.yaml", "dl-operator-mxjob.yaml", "mxjob-cifar-gpu.yaml")


def seed_manifest(name: str) -> dict[str, Any]:
    """The manifest of that name; the test is skipped, loudly, on a machine that has none of them."""
    path = FOLDER / name
    if not FOLDER.is_dir():
        pytest.skip(f"the early operators' manifests are not at {FOLDER}: set DLJOB_MANIFESTS")
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))
