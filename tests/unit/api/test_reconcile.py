"""The steps of a reconcile: what is read and planned, and the outcome for the engine."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api import reader
from ansible_collections.dljob.operator.plugins.module_utils.api import reconcile as module
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome, reconcile
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import slices
from ansible_collections.dljob.operator.plugins.module_utils.shared import cache_snapshot
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import MANAGER
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import LABEL_JOB_UID, LABEL_MANAGED_BY
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Plan
from support.builders import MXNET, NOW, UID, MXJob, mxjob, pods_of
from support.recording_api import Api, context_of

INVALID = ApiError(422, "Invalid", "bad")


class ReadingApi(Api):
    """Records the reads as well. `status_error` is the answer to the write of the status."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.reads: list[str] = []
        self.queries: list[Any] = []
        self.status_error: ApiError | None = None

    def request(self, method: str, path: str, body: Any = None, query: Any = None, content_type: str = "") -> Any:
        if method == "GET":
            self.reads.append(path.rpartition("/")[2])
            self.queries.append(query)
        if method == "PATCH" and self.status_error:
            raise self.status_error
        return super().request(method, path, body, query, content_type)


class PagedApi(ReadingApi):
    """Lists the pods in these pages."""

    def __init__(self, pages: Sequence[Sequence[Any]]) -> None:
        super().__init__()
        self._pages = pages

    def request(self, method: str, path: str, body: Any = None, query: Any = None, content_type: str = "") -> Any:
        if method != "GET":
            return super().request(method, path, body, query, content_type)
        both = f"{LABEL_MANAGED_BY}={MANAGER},{LABEL_JOB_UID}={UID}"
        assert (query["limit"], query["labelSelector"]) == (reader.PAGE, both)
        number = int(query.get("continue", 0))
        self.reads.append(path.rpartition("/")[2])
        following = {"continue": str(number + 1)} if number + 1 < len(self._pages) else {}
        return {"metadata": following, "items": self._pages[number]}


@pytest.fixture(autouse=True)
def no_cache() -> Iterator[None]:
    yield
    cache_snapshot.publish(None)


def watched(*pods: Any, cluster_info: dict[str, Any] | None = None) -> None:
    cache_snapshot.publish({UID: {"Pod": list(pods), "Service": [], "ConfigMap": []}}, cluster_info)


def run(api: Api, job: MXJob | None = None, dry_run: bool = False) -> Outcome:
    return reconcile(context_of(api, dry_run), (job or mxjob().v1().workers(2)).resource(), MXNET)


def invalid() -> MXJob:
    return mxjob().v1().workers(2).container("Worker", name="another")


def test_the_result_for_the_engine_has_all_that_its_queue_needs() -> None:
    resource = {"metadata": {"namespace": "lab", "name": "digits", "uid": "1"}}
    outcome = Outcome(
        resource,
        Plan(),
        True,
        False,
        "3 pods",
        4.0,
        (("pod", "7"), ("other", None)),
        True,
        ("no right",),
        {"state": ""},
        seconds=0.5,
    )
    assert outcome.as_result() == {
        "namespace": "lab",
        "name": "digits",
        "uid": "1",
        "ok": True,
        "changed": False,
        "message": "3 pods",
        "requeue_after": 4.0,
        "continues": True,
        "postponed": False,
        "seconds": 0.5,
        "wrote": [["pod", "7"], ["other", None]],
        "warnings": ["no right"],
    }
    bare = Outcome({"metadata": {}}, Plan(), True, False, "", None).as_result()
    assert (bare["namespace"], bare["name"], bare["uid"]) == ("", "", "")


# --- reads


def test_what_a_job_owns_is_read_where_no_engine_watches() -> None:
    api = ReadingApi()
    run(api)
    assert api.reads == ["pods", "services"]
    assert api.queries == [{"labelSelector": f"{LABEL_JOB_UID}={UID}"}] * 2, "not those of the whole namespace"
    watched()
    api = ReadingApi()
    run(api)
    assert api.reads == []


@pytest.mark.parametrize("are_deleted", [True, False], ids=["deleted", "not in the cache yet"])
def test_the_api_server_decides_whether_the_whole_job_lost_a_pod(are_deleted: bool) -> None:
    """A cache that lacks a pod must not restart a job that trains."""
    job = mxjob().v1().workers(2).restart("OnFailure").run_policy(restartScope="Job").status(phase="Running")
    pods = [pod.resource() for pod in pods_of(job.job())]
    watched(*pods[:1])
    api = PagedApi([pods[:1], [] if are_deleted else pods[1:]])
    outcome = run(api, job)
    assert api.reads == ["pods", "pods"]
    assert (outcome.status or {}).get("attempt") == (1 if are_deleted else None)
    assert (api.status is None, outcome.plan == Plan()) == (not are_deleted, not are_deleted)
    if not are_deleted:
        assert (outcome.ok, outcome.changed, outcome.continues) == (True, False, False)
        assert (outcome.message, bool(outcome.requeue_after)) == ("the cache lacks pods of the job", True)


def test_a_pod_of_another_owner_is_none_of_the_job() -> None:
    """Whoever may create pods can give one the job's label: it must not keep the job from its restart."""
    job = mxjob().v1().workers(2).restart("OnFailure").run_policy(restartScope="Job").status(phase="Running")
    pods = [pod.resource() for pod in pods_of(job.job())]
    foreign = {**pods[1], "metadata": {**pods[1]["metadata"], "uid": "foreign", "ownerReferences": []}}
    watched(*pods[:1])
    assert (run(PagedApi([[*pods[:1], foreign]]), job).status or {}).get("attempt") == 1


def test_of_an_invalid_job_only_a_first_status_needs_the_pods() -> None:
    api = ReadingApi()
    run(api, invalid())
    assert api.reads == ["pods"]
    api = ReadingApi()
    run(api, invalid().status(phase="Failed", state="Failed"))
    assert api.reads == []


def test_accelerators_are_resolved_with_what_the_engine_knows_of_the_cluster() -> None:
    alpha = "alpha.kubernetes.io/nvidia-gpu"
    job = mxjob().v1().workers(1).container("Worker", resources={"limits": {alpha: 1}})
    watched(cluster_info={"config_map": "c", "config_maps": [], "resources": ["nvidia.com/gpu"]})
    api = ReadingApi()
    run(api, job)
    limits = [
        pod["spec"]["containers"][0].get("resources", {}).get("limits") for pod in api.made if pod["kind"] == "Pod"
    ]
    assert {"nvidia.com/gpu": 1} in limits
    assert {alpha: 1} not in limits
    assert api.reads == []


def test_a_reconcile_without_an_engine_has_the_present_time_and_no_others_to_wait_for() -> None:
    context = Context(Api(), Reader(Api()))
    began = datetime.now(UTC)
    assert began <= context.clock() <= datetime.now(UTC)
    assert (context.is_contended, context.changes, context.dry_run) == (False, None, False)


# --- slices


@pytest.mark.parametrize(("has_watch", "expected"), [(True, 3), (False, 6)])
def test_only_a_reconcile_that_another_one_follows_plans_a_slice(
    monkeypatch: pytest.MonkeyPatch, has_watch: bool, expected: int
) -> None:
    monkeypatch.setattr(slices, "LARGEST", 3)
    if has_watch:
        watched()
    outcome = run(Api(), mxjob().v1().workers(5))
    assert len(outcome.plan.pods) == expected
    assert outcome.continues is has_watch


@pytest.mark.parametrize(("is_contended", "writes_at_once", "expected"), [(True, 1, 2), (True, 2, 4), (False, 1, 6)])
def test_beside_other_jobs_a_slice_has_as_many_pods_as_the_congestion_window_permits(
    monkeypatch: pytest.MonkeyPatch, is_contended: bool, writes_at_once: int, expected: int
) -> None:
    monkeypatch.setattr(slices, "LARGEST_BESIDE_OTHERS", 2)
    watched()
    api = Api()
    for _ in range(writes_at_once - 1):
        api.executor.window.measured(0.01)
    context = dataclasses.replace(context_of(api), is_contended=is_contended)
    outcome = reconcile(context, mxjob().v1().workers(5).resource(), MXNET)
    assert len(outcome.plan.pods) == expected
    assert outcome.continues is (expected < 6)


# --- the outcome


def test_a_plan_that_kubernetes_refuses_is_not_reported_as_done() -> None:
    assert run(Api({"Pod": INVALID})).plan == Plan()
    assert len(run(Api()).plan.pods) == 3


def test_a_dry_run_has_the_status_that_it_would_write() -> None:
    api = Api()
    outcome = run(api, dry_run=True)
    assert api.status is None
    assert outcome.status is not None
    assert outcome.status["phase"] == "Creating"
    assert outcome.wrote == ()


def test_the_first_status_is_not_deferred_where_an_object_is_missing() -> None:
    watched()
    api = Api()
    assert (run(api).status, api.status) == (None, None), "the next reconcile writes it"
    api = Api({"Service": ApiError(500, "", "etcd is away")})
    assert run(api).status is not None
    assert "Pod" in api.kinds()
    assert api.status is not None


@pytest.mark.parametrize(("error", "expected"), [(None, 1), (INVALID, 0), (ApiError(500, "", "etcd is away"), 0)])
def test_routes_are_written_after_the_objects_that_they_expose(
    monkeypatch: pytest.MonkeyPatch, error: ApiError | None, expected: int
) -> None:
    written: list[str] = []

    def ensure(api: Any, plan: Plan, namespace: str, uid: str, dry_run: bool) -> list[str]:
        written.append(uid)
        return []

    monkeypatch.setattr(module.routes, "ensure", ensure)
    run(Api({"Pod": error} if error else None))
    run(Api(), invalid())
    assert written == [UID] * expected


def limited() -> MXJob:
    """A job that is reconciled again at its deadline."""
    return mxjob().v1().workers(2).run_policy(activeDeadlineSeconds=100)


def test_a_job_that_has_changed_meanwhile_is_reconciled_again_soon() -> None:
    api = ReadingApi()
    api.status_error = ApiError(409, "Conflict", "the object has been modified")
    outcome = run(api, limited())
    assert (outcome.ok, outcome.changed, outcome.message) == (True, True, "changed meanwhile")
    assert outcome.requeue_after is not None
    assert 0 < outcome.requeue_after < 2
    assert (outcome.status, api.events()) == (None, [])


def test_a_job_that_is_gone_needs_nothing_more() -> None:
    api = ReadingApi()
    api.status_error = ApiError(404, "NotFound", "gone")
    outcome = run(api, limited())
    assert (outcome.ok, outcome.changed, outcome.message, outcome.requeue_after) == (True, True, "", None)
    assert (outcome.status, api.events()) == (None, [])
    assert outcome.wrote, "the cache has to observe the deletion of what was written"


def test_nothing_to_write_is_no_change() -> None:
    pods = [pod.running().resource() for pod in pods_of(mxjob().v1().workers(2).job())]
    job = mxjob().v1().workers(2)
    api = Api()
    for _ in range(3):
        owned = {UID: {"Pod": pods, "Service": [one for one in api.made if one["kind"] == "Service"], "ConfigMap": []}}
        outcome = reconcile(Context(api, Reader(api, owned), clock=lambda: NOW), job.resource(), MXNET)
        job.status(**(api.status or {}))
    assert (outcome.changed, outcome.status, outcome.wrote) == (False, None, ())
