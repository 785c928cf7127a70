"""The finalizer of a watch entry: when an object needs it, and how it is added and removed."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from support.fake_kube_api import ECHO, ECHO_JOBS, FakeKubeApi

from dljob_operator.engine import finalizers
from dljob_operator.engine.discovery import ApiResource
from dljob_operator.watches import Finalizer, Watch

OURS, OTHER = "example.com/echo", "example.com/other"
PLAIN, WATCH = Watch(ECHO), Watch(ECHO, finalizer=Finalizer(OURS))
DELETED = {"deletionTimestamp": "2026-01-02T03:04:05Z"}


@pytest.fixture
def api() -> FakeKubeApi:
    return FakeKubeApi()


@pytest.mark.parametrize(
    ("watch", "metadata", "needs", "finalizing"),
    [
        (WATCH, {}, True, False),
        (WATCH, {"finalizers": None}, True, False),
        (WATCH, {"finalizers": [OTHER]}, True, False),
        (WATCH, {"finalizers": [OTHER, OURS]}, False, False),
        (WATCH, {"finalizers": [OTHER], **DELETED}, False, False),
        (WATCH, {"finalizers": [OTHER, OURS], **DELETED}, False, True),
        (PLAIN, {"finalizers": [OTHER]}, False, False),
        (PLAIN, {"finalizers": [OURS], **DELETED}, False, False),
    ],
)
def test_whether_an_object_needs_or_waits_for_the_finalizer(
    watch: Watch, metadata: dict[str, Any], needs: bool, finalizing: bool
) -> None:
    obj = {"metadata": {"name": "digits", **metadata}}
    assert finalizers.needs_finalizer(watch, obj) is needs
    assert finalizers.is_finalizing(watch, obj) is finalizing


def test_a_finalizer_is_added_behind_those_of_others(api: FakeKubeApi) -> None:
    job = api.add_job(metadata={"finalizers": [OTHER]})
    updated = finalizers.add_finalizer(api, ECHO_JOBS, WATCH, job)
    assert api.job()["metadata"]["finalizers"] == [OTHER, OURS]
    assert updated == api.job(), "the caller continues with the new resource version"


def test_only_our_finalizer_is_removed(api: FakeKubeApi) -> None:
    job = api.add_job(metadata={"finalizers": [OURS, OTHER]})
    finalizers.remove_finalizer(api, ECHO_JOBS, WATCH, job)
    assert api.job()["metadata"]["finalizers"] == [OTHER]


@pytest.mark.parametrize("action", [finalizers.add_finalizer, finalizers.remove_finalizer])
def test_a_finalizer_that_another_client_has_added_since_is_not_lost(api: FakeKubeApi, action: Any) -> None:
    job = api.add_job(metadata={"finalizers": [OURS]})
    api.add_job(metadata={"finalizers": [OURS, OTHER]})
    with pytest.raises(ApiError) as raised:
        action(api, ECHO_JOBS, WATCH, job)
    assert raised.value.status == 409
    assert api.job()["metadata"]["finalizers"] == [OURS, OTHER]


def test_the_finalizer_of_an_object_that_is_gone_counts_as_removed(api: FakeKubeApi) -> None:
    job = api.add_job()
    del api.fake.objects["team", "echojobs"]["digits"]
    finalizers.remove_finalizer(api, ECHO_JOBS, WATCH, job)
    with pytest.raises(ApiError):
        finalizers.add_finalizer(api, ECHO_JOBS, WATCH, job)


def test_a_cluster_scoped_object_has_a_path_without_a_namespace() -> None:
    paths: list[str] = []

    class Api(FakeKubeApi):
        def request(self, method: str, path: str, *_: Any, **__: Any) -> dict[str, Any]:
            paths.append(f"{method} {path}")
            return {}

    obj = {"metadata": {"name": "digits", "resourceVersion": "1"}}
    finalizers.add_finalizer(Api(), ApiResource("/apis/example.com/v1", "echojobs", namespaced=False), WATCH, obj)
    assert paths == ["PATCH /apis/example.com/v1/echojobs/digits"]
