"""Server-side apply: what it sends, and what counts as a change."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.apply import apply
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

PATH = "/apis/kubeflow.org/v1/namespaces/lab/mxjobs/digits"
JOB = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "MXJob",
    "metadata": {"name": "digits", "namespace": "lab"},
    "spec": {"a": 1},
}
QUERY = {"fieldManager": "dljob-operator", "force": "true", "fieldValidation": "Strict"}


class Api(RestClient):
    """Has the object ``before``, or answers with that error; the object ``after`` is the answer to the write."""

    def __init__(self, before: Any, after: Any = JOB) -> None:
        self._before, self._after = before, after
        self.requests: list[tuple[Any, ...]] = []

    def request(self, method: str, path: str, body: Any = None, query: Any = None, content_type: str = "") -> Any:
        if method == "GET":
            assert path == PATH
            if isinstance(self._before, ApiError):
                raise self._before
            return self._before
        self.requests.append((method, path, body, query, content_type))
        return self._after


def stored(spec: Any = None, **metadata: Any) -> dict[str, Any]:
    return {**JOB, "metadata": {**JOB["metadata"], **metadata}, "spec": spec or JOB["spec"]}  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("options", "more"), [({}, {}), ({"dry_run": False}, {}), ({"dry_run": True}, {"dryRun": "All"})]
)
def test_an_object_that_is_missing_is_created(options: dict[str, bool], more: dict[str, str]) -> None:
    api = Api(ApiError(404, "NotFound", "no"))
    applied = apply(api, JOB, **options)
    assert api.requests == [("PATCH", PATH, JOB, {**QUERY, **more}, "application/apply-patch+yaml")]
    assert (applied.before, applied.after, applied.changed) == (None, JOB, True)


@pytest.mark.parametrize(
    ("after", "changed"),
    [
        (stored(uid="1"), False),
        (stored(uid="1", resourceVersion="8", generation=2, managedFields=[{"manager": "other"}]), False),
        (stored(uid="1", spec={"a": 2}), True),
        (stored(labels={"a": "b"}, uid="1"), True),
    ],
)
def test_what_counts_as_a_change(after: dict[str, Any], changed: bool) -> None:
    before = stored(uid="1", resourceVersion="7", generation=1, managedFields=[])
    applied = apply(Api(before, after), JOB)
    assert (applied.before, applied.after, applied.changed) == (before, after, changed)


def test_an_object_that_cannot_be_read_is_not_written() -> None:
    api = Api(ApiError(403, "Forbidden", "no right"))
    with pytest.raises(ApiError, match="no right"):
        apply(api, JOB)
    assert api.requests == []
