"""What tests of every level share: the local cluster, brought up once for all of them and ended afterwards.

`make test` brings it up before pytest starts, and records that in a session (hack/devtools/checks/suite/session.py); a pytest that was
started by hand does it here.
"""

from __future__ import annotations

import contextlib
import functools
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from devtools.checks.suite import session
from devtools.definitions import CRDS, definitions
from kubernetes import client, config

ROOT = Path(__file__).resolve().parents[1]
TEST_CRDS = ROOT / "tests" / "crds"
"""Definitions that stand in for those of other projects."""
OTHER_API_SERVER = "DLJOB_TEST_KUBECONFIG"
"""A kubeconfig of another API server on this machine, for the tests that need no more than that."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first: begun last, they would be what several workers end up waiting for."""
    items.sort(key=lambda item: not any(item.get_closest_marker(name) for name in ("training", "long")))


@pytest.fixture(scope="session")
def cluster() -> Iterator[Path]:
    """The kubeconfig of a running local cluster. One that is up already is used, and left up."""
    from devtools.testbed.base.settings import settings_from
    from devtools.testbed.cluster import lifecycle

    if shared := session.current().kubeconfig:
        yield Path(shared)
        return
    settings = settings_from()
    was_up = lifecycle.exists(settings)
    lifecycle.up(settings)
    try:
        yield settings.kubeconfig
    finally:
        if not was_up:
            lifecycle.down(settings)


@pytest.fixture(scope="session")
def images(cluster: Path) -> None:
    """The example images in the local registry, under the manifests' own names too.

    Of several test runs, or workers of one, only one builds at a time, and the others wait for it.
    """
    from devtools.build.images import build_and_push
    from devtools.testbed.base.settings import settings_from

    if not session.current().images:
        build_and_push(settings_from())


@pytest.fixture(scope="session")
def kubeconfig(request: pytest.FixtureRequest) -> Path:
    """An API server to write to. Only on this machine: the tests install CRDs and delete namespaces."""
    path = Path(os.environ.get(OTHER_API_SERVER) or request.getfixturevalue("cluster"))
    host = urlsplit(config.new_client_from_config(str(path)).configuration.host).hostname or ""
    if host != "localhost" and not ip_address(host).is_loopback:
        pytest.fail(f"{path} is about {host}, and the tests write only to a cluster on this machine", pytrace=False)
    return path


@pytest.fixture(scope="session")
def api(kubeconfig: Path) -> Iterator[client.ApiClient]:
    """A client with all rights."""
    with config.new_client_from_config(str(kubeconfig)) as connected:
        yield connected


@pytest.fixture(scope="session")
def crds(api: client.ApiClient) -> None:
    """All CRDs of crds/, and of tests/crds/, applied and served. They stay: other tests and a running operator use them.

    The first process of a run applies them, and the others find them as they should be. The garbage collector finds a
    new kind only half a minute later; applied here, most tests need not wait for that.
    """
    from dljob_operator.engine.kube import KubeApi
    from dljob_operator.engine.lifecycle.crds import install_crds

    connected = KubeApi(api)
    for folder in (CRDS, TEST_CRDS):
        install_crds(connected, folder)


@contextmanager
def _namespace(api: client.ApiClient) -> Iterator[str]:
    core = client.CoreV1Api(api)
    name = f"test-{uuid.uuid4().hex[:10]}"
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=name)))
    try:
        yield name
    finally:
        if session.current().throwaway:
            _stop(api, name)
        else:
            core.delete_namespace(name)


def _stop(api: client.ApiClient, namespace: str) -> None:
    """End what runs in the namespace of a cluster that goes with this run.

    Deleting the namespace itself costs the control plane two requests for each kind there is: half of all requests of
    the suite, for objects that are no longer needed.
    """
    custom = client.CustomObjectsApi(api)
    for group, version, plural in _job_kinds():
        with contextlib.suppress(client.ApiException):  # a test may have taken the definition away
            custom.delete_collection_namespaced_custom_object(group, version, namespace, plural)
    client.CoreV1Api(api).delete_collection_namespaced_pod(namespace, grace_period_seconds=0)


@functools.cache
def _job_kinds() -> tuple[tuple[str, str, str], ...]:
    """Group, stored version and plural of each of our definitions."""
    found = []
    for definition in definitions().values():
        spec = definition["spec"]
        (stored,) = (version["name"] for version in spec["versions"] if version["storage"])
        found.append((spec["group"], stored, spec["names"]["plural"]))
    return tuple(found)


@pytest.fixture
def namespace(api: client.ApiClient) -> Iterator[str]:
    """A namespace of the test's own, deleted after it."""
    with _namespace(api) as name:
        yield name


@pytest.fixture(scope="module")
def module_namespace(api: client.ApiClient) -> Iterator[str]:
    """A namespace that the tests of a module share."""
    with _namespace(api) as name:
        yield name


@pytest.fixture
def another_namespace(api: client.ApiClient) -> Iterator[str]:
    """One more namespace of the test's own."""
    with _namespace(api) as name:
        yield name


@pytest.fixture(scope="session")
def empty_namespace(api: client.ApiClient) -> Iterator[str]:
    """One namespace for all tests that leave nothing in it: dry runs."""
    with _namespace(api) as name:
        yield name
