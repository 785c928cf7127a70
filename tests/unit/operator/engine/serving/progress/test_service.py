"""Where the endpoint is reached, and in which Secret its key is."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from support.fake_kube_api import FakeKubeApi

from dljob_operator.engine.serving.progress.service import ProgressService


class Api(FakeKubeApi):
    def __init__(self) -> None:
        self.secrets: list[str] = []

    def request(self, method: str, path: str, body: Any = None, **more: Any) -> dict[str, Any]:
        if method == "GET":
            raise ApiError(404, "NotFound", "no such Secret")
        self.secrets.append(f"{path} {body['metadata']['name']}")
        return {}


@pytest.mark.parametrize(
    ("given", "url", "secret"),
    [
        ("", "https://dljob-operator-progress.ops.svc:8444", "dljob-operator-progress"),
        ("https://mine-progress.ops.svc:8444", "https://mine-progress.ops.svc:8444", "mine-progress"),
        ("https://a.ops.svc.cluster.local:1", "https://a.ops.svc.cluster.local:1", "a"),
        ("https://10.0.0.7:8444", "https://10.0.0.7:8444", "dljob-operator-progress"),
        ("https://progress.example.com", "https://progress.example.com", "dljob-operator-progress"),
    ],
)
def test_the_url_and_the_secret(given: str, url: str, secret: str) -> None:
    api = Api()
    service = ProgressService(api, {"POD_NAMESPACE": "ops"}, given, ":0")
    assert service.endpoint("Rank0").url == f"{url}/progress"
    assert "BEGIN CERTIFICATE" in service.endpoint("Rank0").authority
    assert api.secrets == [f"/api/v1/namespaces/ops/secrets {secret}"]
    assert not service.serves
    service.stop()


def test_an_address_that_is_none() -> None:
    with pytest.raises(ValueError, match="--progress-bind-address: 'op:x' has no port; write :8444"):
        ProgressService(Api(), {"POD_NAMESPACE": "ops"}, "", "op:x")
