"""A pod that somebody else's request removes while the operator deletes it."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.writer import Writer
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Deletion, Plan
from support.builders import mxjob
from support.recording_api import Api


class Deleting(Api):
    """Answers a DELETE with a given body."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self._body = body

    def request(self, method: str, path: str, body: Any = None, query: Any = None, content_type: str = "") -> Any:
        return self._body if method == "DELETE" else super().request(method, path, body, query, content_type)


@pytest.mark.parametrize(
    ("body", "version"),
    [
        ({"kind": "Status"}, None),
        ({"kind": "Pod", "metadata": {"uid": "u", "resourceVersion": "7"}}, "7"),
        ({"kind": "Pod", "metadata": {"uid": "u"}}, None),
        ({"kind": "Pod"}, None),
    ],
)
def test_the_version_to_wait_for(body: dict[str, Any], version: str | None) -> None:
    writer = Writer(Deleting(body), mxjob("digits").v1().workers(1).resource())
    written = writer.objects(Plan(deletions=(Deletion("Pod", "digits-worker-0", "u"),)))
    assert written.versions == [("u", version)]
