"""Installing the definitions: how the wait for their establishment ends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator.engine.crds import install_crds
from dljob_operator.engine.kube import ApiConnectionError

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "jobs.example.com", "uid": "u"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "jobs"},
        "versions": [{"name": "v1", "served": True}],
    },
}
ESTABLISHED = {
    "type": "MODIFIED",
    "object": {**DEFINITION, "status": {"conditions": [{"type": "Established", "status": "True"}]}},
}
GONE = {
    "type": "ERROR",
    "object": {"kind": "Status", "status": "Failure", "reason": "Expired", "message": "too old", "code": 410},
}


class Api:
    """Accepts every definition, and sends these events."""

    def __init__(self, *events: Any) -> None:
        self._events = events

    def request(self, *_: Any, **__: Any) -> Any:
        return DEFINITION

    @contextlib.contextmanager
    def watch(self, *_: Any) -> Iterator[Iterator[Any]]:
        yield iter(self._events)


def install(tmp_path: Path, *events: Any) -> list[str]:
    (tmp_path / "jobs.example.com.yaml").write_text(yaml.safe_dump(DEFINITION))
    api: Any = Api(*events)
    return [one.name for one in install_crds(api, tmp_path)]


def test_an_established_definition_is_installed(tmp_path: Path) -> None:
    assert install(tmp_path, {"type": "ADDED", "object": DEFINITION}, ESTABLISHED) == ["jobs.example.com"]


def test_a_watch_that_ends_with_an_error_is_an_error_of_the_api_server(tmp_path: Path) -> None:
    with pytest.raises(ApiError, match="too old") as raised:
        install(tmp_path, GONE)
    assert raised.value.status == 410


def test_a_definition_that_is_never_established_is_named(tmp_path: Path) -> None:
    with pytest.raises(ApiConnectionError, match=r"jobs\.example\.com was not served"):
        install(tmp_path)
