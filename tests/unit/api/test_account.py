"""The account of what a job uses, in the statuses that a reconcile writes."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.cluster_info import OperatorSettings
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import reconcile
from ansible_collections.dljob.operator.plugins.module_utils.shared import cache_snapshot
from ansible_collections.dljob.operator.plugins.module_utils.shared.deleted_pods import header, marked
from hypothesis import given
from hypothesis import strategies as st
from support.builders import MXNET, NOW, UID, Pod, mxjob, pods_of, stamp
from support.recording_api import Api, context_of


def pod(made_before: Pod, since: int) -> dict[str, Any]:
    """It runs for so many seconds."""
    made = made_before.running().resource()
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(-since)}]
    made["status"] |= {"conditions": conditions}
    made["status"]["containerStatuses"][0]["state"]["running"]["startedAt"] = stamp(-since)
    made["spec"] |= {"nodeName": "n"}
    made["spec"]["containers"][0]["resources"] = {"requests": {"nvidia.com/gpu": "2"}}
    return made


JOB = mxjob().v1().workers(2)


def written(*pods: Any, gone: Any = None, usage: bool = True, job: Any = None) -> Any:
    owned = {"Pod": list(pods), "Service": [], "ConfigMap": [], **({} if gone is None else {"DeletedPods": gone})}
    cache_snapshot.publish({UID: owned})
    api = Api()
    try:
        context = dataclasses.replace(context_of(api), settings=OperatorSettings(usage=usage))
    finally:
        cache_snapshot.publish(None)
    reconcile(context, job or JOB.resource(), MXNET)
    assert api.status is not None
    return api.status.get("usage")


def pods() -> list[dict[str, Any]]:
    return [pod(manifest, 100) for manifest in pods_of(JOB.job())]


def test_a_status_has_the_account() -> None:
    found = written(*pods(), gone=[header("w", stamp(-500))])
    assert found["asOf"] == stamp()
    assert found["phase"] == "Running"
    assert found["resourceSeconds"] == {"nvidia.com/gpu": 2 * 100 * len(pods_of(JOB.job()))}
    assert found["held"] == {"nvidia.com/gpu": 2 * len(pods_of(JOB.job()))}
    assert found["counted"] == "w/0"


def test_pods_that_are_gone_count() -> None:
    lost = marked({**pod(pods_of(JOB.job())[0], 50), "metadata": {"uid": "x"}}, 7, stamp(-20))
    found = written(*pods(), gone=[header("w", stamp(-500)), lost])
    assert found["resourceSeconds"] == {"nvidia.com/gpu": 2 * 100 * len(pods()) + 2 * 30}
    assert found["counted"] == "w/7"


@pytest.mark.parametrize(("age", "is_written"), [(5, False), (9, False), (10, True)])
def test_while_a_job_starts_not_every_status_has_it(age: int, is_written: bool) -> None:
    job = JOB.resource()
    job["metadata"]["creationTimestamp"] = stamp(-age)
    waiting = [one.resource() for one in pods_of(JOB.job())]
    assert (written(*waiting, job=job) is not None) == is_written


def test_without_the_option_there_is_none() -> None:
    assert written(*pods(), usage=False) is None


def test_one_that_an_operator_with_the_option_has_written_stays() -> None:
    job = JOB.resource()
    job["status"] = {"usage": {"asOf": stamp()}}
    assert written(*pods(), usage=False, job=job) == {"asOf": stamp()}


def test_without_an_engine_the_pods_of_the_api_server_count() -> None:
    class Listing(Api):
        def request(self, method: str, path: str, *args: Any, **more: Any) -> Any:
            if method == "GET" and path.endswith("/pods"):
                return {"metadata": {}, "items": pods()}
            return super().request(method, path, *args, **more)

    api = Listing()
    context = dataclasses.replace(
        context_of(api), reader=Reader(api), settings=OperatorSettings(usage=True), clock=lambda: NOW
    )
    reconcile(context, JOB.resource(), MXNET)
    assert api.status is not None
    assert "counted" not in api.status["usage"]
    assert api.status["usage"]["phase"] == "Running"


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(stamp()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FIELDS = (
    *("asOf", "phase", "since", "seconds", "resourceSeconds", "held", "interruptions", "settled", "needed", "cause"),
    *("beganWith", "deleted", "counted"),
)


@given(ANY)
def test_any_value_as_the_account(value: Any) -> None:
    job = {**JOB.resource(), "status": {"usage": value}}
    assert written(*pods(), job=job)["phase"] == "Running"


@given(st.sampled_from(FIELDS), ANY)
def test_any_value_in_a_field_of_the_account(field: str, value: Any) -> None:
    before = written(*pods(), gone=[header("w", stamp(-500))])
    job = {**JOB.resource(), "status": {"usage": {**before, field: value}}}
    assert written(*pods(), job=job, gone=[header("w", stamp(-500))])["asOf"] >= stamp()
