"""The operator that the end-to-end tests talk to: one for all of a module, as on a real cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from demo.operator_process import OperatorProcess
from e2e.support import Cluster


@pytest.fixture(scope="module")
def operator(cluster: Path, images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorProcess]:
    log = tmp_path_factory.mktemp("operator") / "operator.log"
    with OperatorProcess(cluster, log) as process:
        process.wait_ready()
        yield process


@pytest.fixture
def here(cluster: Path, namespace: str, operator: OperatorProcess) -> Cluster:
    """The test's own namespace, with an operator at work on it."""
    return Cluster(cluster, namespace)
