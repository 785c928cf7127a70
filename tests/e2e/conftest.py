"""The operator that the end-to-end tests talk to: one for all of them, as on a real cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from devtools.checks.suite import session
from devtools.testbed.operator import OperatorProcess
from support.live_jobs import Cluster


@pytest.fixture(scope="module")
def operator_log(cluster: Path, images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The log of the operator at work: that of the suite's session, or one for the tests of a module.

    It leaves alone the jobs that bear the label `session.LABEL`: their tests start an operator of their own.
    """
    if shared := session.current().operator_log:
        yield Path(shared)
        return
    log = tmp_path_factory.mktemp("operator") / "operator.log"
    command = session.operator_command()
    with OperatorProcess(cluster, log, command=command.words, ready=command.ready) as process:
        process.wait_ready()
        yield log


@pytest.fixture
def here(cluster: Path, namespace: str, operator_log: Path) -> Cluster:
    """The test's own namespace, with an operator at work on it."""
    return Cluster(cluster, namespace)


@pytest.fixture
def own(cluster: Path, images: None, crds: None, namespace: str) -> Cluster:
    """The test's own namespace, whose jobs the shared operator leaves to the test: to its operator, or to none."""
    return Cluster(cluster, namespace, own_operator=True)
