"""Fixtures of the engine's tests: a test kind, and engines that watch it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from integration.engine.support import ECHOJOBS, RECORD, ROOT, Engine, Jobs, Process, Runners, crd, remove_crd

from dljob_operator.engine.discovery import ApiResource
from dljob_operator.engine.kube import KubeApi
from dljob_operator.engine.lifecycle.crds import install_crds
from dljob_operator.logs import TextFormatter


@pytest.fixture(scope="session")
def kube(kubeconfig: Path) -> KubeApi:
    return KubeApi.connect(kubeconfig)


@pytest.fixture(scope="session")
def echojobs(kube: KubeApi, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiResource]:
    """The tests' own kind, served."""
    directory = tmp_path_factory.mktemp("crds")
    (directory / "echo.yaml").write_text(yaml.safe_dump(crd()))
    (installed,) = install_crds(kube, directory)
    yield ECHOJOBS
    remove_crd(kube, installed.name)


@pytest.fixture
def jobs(kube: KubeApi, echojobs: ApiResource, namespace: str) -> Jobs:
    return Jobs(kube, namespace)


@pytest.fixture(scope="session")
def roles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the roles `echo` and `goodbye`, and our collection under `collections`."""
    root = tmp_path_factory.mktemp("engine")
    for name in ("echo", "goodbye"):
        (root / "roles" / name / "tasks").mkdir(parents=True)
        (root / "roles" / name / "tasks" / "main.yml").write_text("- name: Record\n  record: {}\n")
        (root / "roles" / name / "action_plugins").mkdir()
        (root / "roles" / name / "action_plugins" / "record.py").write_text(RECORD.read_text())
    (root / "collections" / "ansible_collections" / "dljob").mkdir(parents=True)
    (root / "collections" / "ansible_collections" / "dljob" / "operator").symlink_to(ROOT)
    return root


@pytest.fixture(scope="session")
def runners(roles: Path) -> Iterator[Runners]:
    made = Runners(roles)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def log_fields(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """`caplog.text` has the fields of the records, as the operator writes them."""
    before = caplog.handler.formatter
    caplog.handler.setFormatter(TextFormatter())
    yield
    caplog.handler.setFormatter(before)


@pytest.fixture
def engine(
    kube: KubeApi,
    runners: Runners,
    echojobs: ApiResource,
    roles: Path,
    tmp_path: Path,
    namespace: str,
    caplog: pytest.LogCaptureFixture,
) -> Iterator[Engine]:
    caplog.set_level(logging.INFO, "dljob_operator")
    made = Engine(kube, runners, roles, tmp_path / "record", namespace)
    yield made
    if hasattr(made, "controller"):
        made.stop()


@pytest.fixture
def processes() -> Iterator[list[Process]]:
    """The processes that a test has started. The fixture kills those that still run."""
    started: list[Process] = []
    yield started
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()
