"""The label of the pod that serves the endpoint."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator.engine.serving.progress.leader_label import set_label

ENVIRON = {"POD_NAME": "op-1", "POD_NAMESPACE": "dljob-system"}


class Api:
    def __init__(self, error: Exception | None = None) -> None:
        self.sent: list[tuple[Any, ...]] = []
        self._error = error

    def request(self, method: str, path: str, body: object = None, *, content_type: str = "") -> dict[str, Any]:
        self.sent.append((method, path, body, content_type))
        if self._error:
            raise self._error
        return {}


@pytest.mark.parametrize(("serves", "value"), [(True, "true"), (False, None)])
def test_it_is_set_and_removed(*, serves: bool, value: str | None) -> None:
    api = Api()
    set_label(api, ENVIRON, serves=serves)
    body = {"metadata": {"labels": {"dljob.operator/serves-progress": value}}}
    where = "/api/v1/namespaces/dljob-system/pods/op-1"
    assert api.sent == [("PATCH", where, body, "application/merge-patch+json")]


def test_outside_a_pod_nothing_is_sent() -> None:
    api = Api()
    set_label(api, {"POD_NAMESPACE": "dljob-system"}, serves=True)
    assert api.sent == []


def test_a_missing_right_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    set_label(Api(ApiError(403, "Forbidden", "pods is forbidden")), ENVIRON, serves=True)
    assert "cannot label the operator's own pod" in caplog.text
