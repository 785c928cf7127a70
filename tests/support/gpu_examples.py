"""The examples for GPUs, which no test runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

GPU = "nvidia.com/gpu"
FILES = sorted((Path(__file__).resolve().parents[2] / "examples" / "gpu").glob("*.yaml"))

TRAINING = {
    "PyTorchJob": {"Master", "Worker"},
    "DLJob": {"Master", "Worker"},
    "XGBoostJob": {"Master", "Worker"},
    "TFJob": {"Worker"},
    "PaddleJob": {"Worker"},
    "JAXJob": {"Worker"},
    "MXJob": {"Worker"},
    "Caffe2Job": {"Worker"},
    "MPIJob": {"Worker"},
}
"""The replica types that train, by kind: an MXJob's servers and an MPIJob's launcher need no GPU."""


def documents(file: Path) -> list[dict[str, Any]]:
    """The objects of an example."""
    return list(yaml.safe_load_all(file.read_text(encoding="utf-8")))


def job_of(file: Path) -> dict[str, Any]:
    """Its job."""
    (job,) = (document for document in documents(file) if document["kind"] in TRAINING)
    return job
