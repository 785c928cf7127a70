"""What no reconcile may do, whatever has changed in the cluster since it read its objects.

The API server here stores objects and checks what the real one checks: preconditions of a deletion, the resource version
of an update, and names that are taken.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.bounded_executor import BoundedExecutor
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome, reconcile
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient
from ansible_collections.dljob.operator.plugins.module_utils.shared import cache_snapshot
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from support.builders import MXNET, TENSORFLOW, UID, MXJob, Resource, mxjob, pods_of, stamp, tfjob
from support.recording_api import context_of

CONFLICT = ApiError(409, "Conflict", "the object has been modified")
OTHER_UID = "0f0f0f0f-0000-0000-0000-000000000000"


class Cluster(RestClient):
    """A store of objects by path. ``before`` has errors for the next requests of a method, in their order."""

    def __init__(self, *objects: Resource) -> None:
        self.executor = BoundedExecutor(2)
        self.objects = {_path(each): copy.deepcopy(each) for each in objects}
        self.before: dict[str, list[ApiError]] = {}
        self.events: list[str] = []
        self.writes: list[tuple[str, str]] = []

    def request(self, method: str, path: str, body: Any = None, query: Any = None, content_type: str = "") -> Any:
        dry = "dryRun" in (query or {}) or "dryRun" in (body if isinstance(body, dict) else {})
        if self.before.get(method):
            raise self.before[method].pop(0)
        if method == "POST":
            return self._create(path, body, dry)
        if method == "GET" and path.split("/")[-3] == "namespaces":
            return {"items": [each for name, each in self.objects.items() if name.startswith(path + "/")]}
        present = self.objects.get(path.removesuffix("/status"))
        if present is None:
            raise ApiError(404, "NotFound", f"{path} not found")
        if method == "GET":
            return copy.deepcopy(present)
        if not dry:
            self.writes.append((method, path))
        return {"DELETE": self._delete, "PATCH": self._patch, "PUT": self.put}[method](path, present, body, dry)

    def _create(self, path: str, body: Resource, dry: bool) -> Resource:
        if body["kind"] == "Event":
            self.events.append(body["reason"])
            return body
        name = f"{path}/{body['metadata']['name']}"
        if name in self.objects:
            raise ApiError(409, "AlreadyExists", f"{name} already exists")
        made = copy.deepcopy(body)
        made["metadata"] |= {"uid": f"uid of {name}", "resourceVersion": "1"}
        if not dry:
            self.writes.append(("POST", name))
            self.objects[name] = made
        return made

    def _delete(self, path: str, present: Resource, body: Resource, dry: bool) -> Resource:
        wanted = (body or {}).get("preconditions") or {}
        if wanted.get("uid", present["metadata"]["uid"]) != present["metadata"]["uid"]:
            raise ApiError(409, "Conflict", "the UID in the precondition is not that of the object")
        version = present["metadata"].get("resourceVersion")
        if wanted.get("resourceVersion", version) != version:
            raise ApiError(409, "Conflict", "the resource version in the precondition is not that of the object")
        if not dry:
            del self.objects[path]
        return {"kind": "Status", "status": "Success"}

    def _patch(self, path: str, present: Resource, body: Any, dry: bool) -> Resource:
        found = copy.deepcopy(present)
        for change in body if isinstance(body, list) else ():
            keys = change["path"].strip("/").split("/")
            place = found
            for key in keys[:-1]:
                place = place[key]
            if change["op"] == "test" and place.get(keys[-1]) != change["value"]:
                raise ApiError(422, "Invalid", "the test operation of the patch failed")
            place[keys[-1]] = change["value"]
        if isinstance(body, dict):
            found |= {key: value for key, value in body.items() if key != "metadata"}
            for name, value in (body.get("metadata") or {}).items():
                before = found["metadata"].get(name)
                found["metadata"][name] = {**before, **value} if isinstance(before, dict) else value
        return self.put(path, present, found, dry)

    def put(self, path: str, present: Resource, body: Resource, dry: bool) -> Resource:
        version, uid = (present["metadata"][key] for key in ("resourceVersion", "uid"))
        given = body["metadata"]
        if (given.get("resourceVersion", version), given.get("uid", uid)) != (version, uid):
            raise CONFLICT
        marks = {name: given[name] for name in ("labels", "annotations") if name in given}
        made = {**body, "metadata": {**present["metadata"], **marks, "resourceVersion": str(int(version) + 1)}}
        if not dry:
            self.objects[path.removesuffix("/status")] = made
        return made


def _path(resource: Resource) -> str:
    metadata = resource["metadata"]
    prefix = "/apis/" if "/" in resource["apiVersion"] else "/api/"
    plural = {"MXJob": "mxjobs", "TfJob": "tfjobs", "Pod": "pods", "Service": "services"}[resource["kind"]]
    return f"{prefix}{resource['apiVersion']}/namespaces/default/{plural}/{metadata['name']}"


@pytest.fixture(autouse=True)
def engine() -> Iterator[None]:
    yield
    cache_snapshot.publish(None)


def observe(*pods: Resource) -> None:
    """What the engine's cache has of the job: maybe no longer what is in the cluster."""
    cache_snapshot.publish({UID: {"Pod": list(pods), "Service": [], "ConfigMap": [], "Deployment": []}})


def new_job() -> MXJob:
    return mxjob().v1().workers(2)


def stored(job: Resource, **metadata: Any) -> Resource:
    return {**job, "metadata": {**job["metadata"], **metadata}}


def run(cluster: Cluster, resource: Resource, dry_run: bool = False) -> Outcome:
    return reconcile(context_of(cluster, dry_run), resource, MXNET)


def names(cluster: Cluster, kind: str) -> set[str]:
    return {each["metadata"]["name"] for each in cluster.objects.values() if each["kind"] == kind}


# --- deletion of pods


def superfluous() -> tuple[Resource, list[Resource]]:
    """A running job of one worker, and the pods of the two workers that it had before."""
    pods = [pod.running().resource() for pod in pods_of(new_job().job())]
    status = {"phase": "Running", "conditions": [{"type": "Created", "status": "True"}]}
    return {**mxjob().v1().workers(1).resource(), "status": status}, pods


def test_a_pod_that_the_job_no_longer_needs_is_deleted() -> None:
    resource, pods = superfluous()
    observe(*pods)
    cluster = Cluster(resource, *pods)
    before = names(cluster, "Pod")
    run(cluster, resource)
    assert before - names(cluster, "Pod")


def test_a_pod_that_has_replaced_the_observed_one_is_not_deleted() -> None:
    """Another reconcile has deleted the pod and created it again since: that one is needed."""
    resource, pods = superfluous()
    observe(*pods)
    newer = [stored(pod, uid=f"newer-{place}") for place, pod in enumerate(pods)]
    cluster = Cluster(resource, *newer)
    outcome = run(cluster, resource)
    assert {pod["metadata"]["uid"] for pod in cluster.objects.values() if pod["kind"] == "Pod"} >= {
        pod["metadata"]["uid"] for pod in newer
    }
    assert outcome.ok


# --- deletion of the job


def expired() -> Resource:
    """A job that has succeeded a minute ago and lives for 10 s more."""
    job = new_job().run_policy(ttlSecondsAfterFinished=10).resource()
    return {
        **job,
        "status": {
            "phase": "Done",
            "state": "Succeeded",
            "startTime": stamp(-120),
            "completionTime": stamp(-60),
            "conditions": [{"type": "Succeeded", "status": "True", "lastTransitionTime": stamp(-60)}],
        },
    }


def test_a_job_whose_time_to_live_is_over_is_deleted() -> None:
    resource = expired()
    observe()
    cluster = Cluster(resource)
    outcome = run(cluster, resource)
    assert cluster.objects == {}
    assert (outcome.ok, outcome.changed, outcome.continues, outcome.requeue_after) == (True, True, False, None)


def test_a_new_job_of_the_name_outlives_the_time_to_live_of_the_old_one() -> None:
    resource = expired()
    observe()
    cluster = Cluster(stored(resource, uid=OTHER_UID))
    outcome = run(cluster, resource)
    assert names(cluster, "MXJob") == {resource["metadata"]["name"]}
    assert outcome.ok


def test_a_job_that_was_changed_at_the_end_of_its_time_to_live_is_read_again() -> None:
    """The change may extend its time to live."""
    resource = {**expired()}
    resource["metadata"] = {**resource["metadata"], "resourceVersion": "1"}
    observe()
    changed = stored(resource)
    changed["metadata"]["resourceVersion"] = "2"
    cluster = Cluster(changed)
    outcome = run(cluster, resource)
    assert names(cluster, "MXJob") == {resource["metadata"]["name"]}
    assert (outcome.ok, outcome.changed, outcome.message) == (True, False, "changed meanwhile")
    assert outcome.requeue_after is not None


def test_a_job_that_somebody_else_has_deleted_needs_no_deletion() -> None:
    resource = expired()
    observe()
    outcome = run(Cluster(), resource)
    assert (outcome.ok, outcome.requeue_after) == (True, None)


def test_a_dry_run_deletes_no_job() -> None:
    resource = expired()
    observe()
    cluster = Cluster(resource)
    run(cluster, resource, dry_run=True)
    assert (len(cluster.objects), cluster.writes) == (1, [])


@pytest.mark.parametrize("status", [403, 500])
def test_an_error_of_the_jobs_deletion_is_reported(status: int) -> None:
    resource = expired()
    observe()
    cluster = Cluster(resource)
    cluster.before["DELETE"] = [ApiError(status, "Error", "no")]
    with pytest.raises(ApiError):
        run(cluster, resource)


# --- the status


def running() -> tuple[Resource, list[Resource]]:
    """A job whose pods have just started, so that its status changes."""
    pods = [pod.running().resource() for pod in pods_of(new_job().job())]
    status = {"phase": "Creating", "conditions": [{"type": "Created", "status": "True"}]}
    return {**new_job().resource(), "status": status}, pods


def test_the_status_is_written_where_the_job_is_as_it_was_read() -> None:
    resource, pods = running()
    observe(*pods)
    cluster = Cluster(resource, *pods)
    outcome = run(cluster, resource)
    assert cluster.objects[_path(resource)]["status"]["phase"] == "Running"
    assert (UID, cluster.objects[_path(resource)]["metadata"]["resourceVersion"]) in outcome.wrote
    assert cluster.events


def test_a_status_of_an_older_version_of_the_job_is_not_written_and_the_job_reconciled_again() -> None:
    resource, pods = running()
    observe(*pods)
    cluster = Cluster(stored(resource, resourceVersion="99"), *pods)
    outcome = run(cluster, resource)
    assert cluster.objects[_path(resource)]["status"] == resource["status"]
    assert outcome.ok, "a conflict is no failure"
    assert outcome.requeue_after is not None
    assert outcome.requeue_after <= 5, "soon"
    assert cluster.events == [], "the Events belong to a status that was not written"


def test_a_job_that_is_gone_is_not_reconciled_again() -> None:
    resource, pods = running()
    observe(*pods)
    outcome = run(Cluster(*pods), resource)
    assert (outcome.ok, outcome.requeue_after) == (True, None)


@pytest.mark.parametrize("status", [403, 500])
def test_any_other_error_of_the_status_fails_the_reconcile(status: int) -> None:
    resource, pods = running()
    observe(*pods)
    cluster = Cluster(resource, *pods)
    cluster.before["PATCH"] = [ApiError(status, "Error", "no")]
    with pytest.raises(ApiError):
        run(cluster, resource)


def test_a_dry_run_writes_nothing() -> None:
    resource = new_job().resource()
    observe()
    cluster = Cluster(resource)
    outcome = run(cluster, resource, dry_run=True)
    assert (cluster.writes, cluster.events) == ([], [])
    assert (outcome.changed, outcome.wrote) == (True, ())


# --- names that are taken


def foreign(kind: str, name: str, *owners: Resource, **metadata: Any) -> Resource:
    found = {"name": name, "namespace": "default", "uid": "foreign", "resourceVersion": "5", **metadata}
    return {"apiVersion": "v1", "kind": kind, "metadata": {**found, "ownerReferences": list(owners)}}


def reference(**changes: Any) -> Resource:
    made = {"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "name": "digits", "uid": UID, "controller": True}
    return {**made, **changes}


def first_names() -> dict[str, str]:
    """The name of one object of each kind that a new job makes."""
    observe()
    cluster = Cluster(new_job().resource())
    run(cluster, new_job().resource())
    return {kind: min(names(cluster, kind)) for kind in ("Pod", "Service")}


OWNERS = {
    "nobody": [],
    "another kind": [reference(kind="TFJob", uid=OTHER_UID)],
    "another job": [reference(name="letters", uid=OTHER_UID)],
    "the job, but not as its controller": [reference(controller=False)],
}


@pytest.mark.parametrize("kind", ["Pod", "Service"])
@pytest.mark.parametrize("owners", [pytest.param(owners, id=owner) for owner, owners in OWNERS.items()])
def test_an_object_of_somebody_else_is_neither_used_nor_changed(kind: str, owners: list[Resource]) -> None:
    name = first_names()[kind]
    labels = {"dljob.operator/job-uid": UID}
    taken = foreign(kind, name, *owners, labels=labels)
    resource = new_job().resource()
    observe()
    cluster = Cluster(resource, taken)
    outcome = run(cluster, resource)
    status = cluster.objects[_path(resource)].get("status") or {}
    assert cluster.objects[_path(taken)] == taken
    assert status["state"] == "Created"
    assert status["reason"].startswith(f"{kind}/{name}: an object of that name exists and does not belong to this job")
    assert (outcome.ok, outcome.requeue_after) == (True, 5.0)


@pytest.mark.parametrize("kind", ["Pod", "Service"])
def test_an_object_of_the_job_itself_is_used(kind: str) -> None:
    """An earlier reconcile created it, and the cache does not show it yet."""
    resource = new_job().resource()
    observe()
    first = Cluster(resource)
    run(first, resource)
    created = [each for each in first.objects.values() if each["kind"] == kind]
    cluster = Cluster(resource, *created)
    outcome = run(cluster, resource)
    status = cluster.objects[_path(resource)].get("status") or {}
    assert status.get("state") != "Failed"
    assert outcome.ok
    assert names(cluster, "Pod") == names(first, "Pod")


def test_a_terminating_object_of_somebody_else_is_waited_for() -> None:
    name = first_names()["Pod"]
    resource = new_job().resource()
    observe()
    cluster = Cluster(resource, foreign("Pod", name, deletionTimestamp=stamp()))
    outcome = run(cluster, resource)
    status = cluster.objects[_path(resource)].get("status") or {}
    assert status.get("state") != "Failed"
    assert outcome.requeue_after is not None


# --- errors of single requests


@pytest.mark.parametrize("gone", [True, False])
def test_a_pod_that_somebody_else_has_deleted_is_no_error(gone: bool) -> None:
    resource, pods = superfluous()
    observe(*pods)
    cluster = Cluster(resource, *([] if gone else pods))
    outcome = run(cluster, resource)
    assert (outcome.ok, outcome.warnings) == (True, ())
    assert not cluster.objects[_path(resource)]["status"].get("reason")


DENIALS = [
    ApiError(403, "Forbidden", "a webhook says no"),
    ApiError(422, "Invalid", "a ValidatingAdmissionPolicy says no"),
]


@pytest.mark.parametrize("denial", DENIALS, ids=lambda one: one.reason)
def test_a_pod_that_may_not_be_deleted_is_reported_and_tried_again(denial: ApiError) -> None:
    resource, pods = superfluous()
    observe(*pods)
    cluster = Cluster(resource, *pods)
    cluster.before["DELETE"] = [denial] * len(pods)
    outcome = run(cluster, resource)
    assert denial.message in cluster.objects[_path(resource)]["status"]["reason"]
    assert cluster.objects[_path(resource)]["status"]["state"] not in ("Failed", "Succeeded")
    assert outcome.requeue_after is not None


@pytest.mark.parametrize("denial", DENIALS, ids=lambda one: one.reason)
def test_a_job_has_succeeded_although_its_pods_may_not_be_deleted(denial: ApiError) -> None:
    job = new_job().run_policy(cleanPodPolicy="All").resource()
    resource = {**job, "status": expired()["status"]}
    pods = [pod.succeeded().resource() for pod in pods_of(new_job().job())]
    observe(*pods)
    cluster = Cluster(resource, *pods)
    cluster.before["DELETE"] = [denial] * len(pods)
    outcome = run(cluster, resource)
    status = cluster.objects[_path(resource)]["status"]
    assert (status["state"], "failure" in status) == ("Succeeded", False)
    assert denial.message in status["reason"]
    assert outcome.requeue_after is not None


@pytest.mark.parametrize("error", [ApiError(500, "InternalError", "etcd"), ApiError(404, "NotFound", "gone")])
def test_an_owner_that_cannot_be_read_is_asked_for_again(error: ApiError) -> None:
    """The name was taken, and the object is gone or unreadable a moment later."""
    name = first_names()["Pod"]
    resource = new_job().resource()
    observe()
    cluster = Cluster(resource, foreign("Pod", name))
    cluster.before["GET"] = [error]
    outcome = run(cluster, resource)
    assert (cluster.objects[_path(resource)].get("status") or {}).get("state") != "Failed"
    assert outcome.requeue_after is not None


def without_label(resource: Resource) -> Resource:
    """The job's first pod, as another operator would have created it."""
    observe()
    first = Cluster(resource)
    run(first, resource)
    pod = next(each for each in first.objects.values() if each["kind"] == "Pod")
    del pod["metadata"]["labels"]["dljob.operator/job-uid"]
    return pod


def test_an_object_of_the_job_without_its_label_that_cannot_be_changed_is_reported() -> None:
    """Nothing would ever see it: the cache and the reads select by this label."""
    resource = new_job().resource()
    cluster = Cluster(resource, without_label(resource))
    cluster.before["PATCH"] = [ApiError(403, "Forbidden", 'pods is forbidden: cannot patch resource "pods"')]
    outcome = run(cluster, resource)
    status = cluster.objects[_path(resource)]["status"]
    assert "lacks the label" in status["reason"]
    assert "cannot patch" in status["reason"]
    assert status["state"] != "Failed"
    assert outcome.requeue_after is not None


def test_an_object_of_the_job_without_its_label_gets_it() -> None:
    """The plan takes the pod for a missing one, so this reconcile does not write its status."""
    resource = new_job().resource()
    pod = without_label(resource)
    cluster = Cluster(resource, pod)
    outcome = run(cluster, resource)
    assert cluster.objects[_path(pod)]["metadata"]["labels"]["dljob.operator/job-uid"] == UID
    assert cluster.objects[_path(pod)]["spec"] == pod["spec"]
    assert "status" not in cluster.objects[_path(resource)]
    assert cluster.events == ["Adopted"]
    assert outcome.requeue_after is not None


def test_what_is_written_is_reported_with_its_version() -> None:
    """The engine waits until its cache shows these versions."""
    resource = new_job().resource()
    observe()
    cluster = Cluster(resource)
    outcome = run(cluster, resource)
    versions = {
        (each["metadata"]["uid"], each["metadata"]["resourceVersion"])
        for each in cluster.objects.values()
        if each["kind"] in ("Pod", "Service")
    }
    assert versions <= set(outcome.wrote)
    assert {kind for kind in ("Pod", "Service") if names(cluster, kind)} == {"Pod", "Service"}


def test_a_deleted_pod_is_reported_as_gone() -> None:
    resource, pods = superfluous()
    observe(*pods)
    cluster = Cluster(resource, *pods)
    outcome = run(cluster, resource)
    left = {each["metadata"]["uid"] for each in cluster.objects.values()}
    deleted = {pod["metadata"]["uid"] for pod in pods} - left
    assert deleted
    assert {(uid, None) for uid in deleted} <= set(outcome.wrote)


def test_a_job_that_is_being_deleted_is_left_to_the_garbage_collector() -> None:
    resource = stored(new_job().resource(), deletionTimestamp=stamp())
    observe()
    cluster = Cluster(resource)
    outcome = run(cluster, resource)
    assert (cluster.writes, cluster.events) == ([], [])
    assert (outcome.ok, outcome.changed, outcome.requeue_after) == (True, False, None)


# --- objects besides pods


def with_tensorboard() -> Resource:
    job = tfjob(master=1)
    job["metadata"] = {**job["metadata"], "resourceVersion": "1"}
    job["spec"]["tensorboard"] = {"logDir": "/logs"}
    return job


def test_a_tensorboard_is_created_and_replaced_only_where_it_differs() -> None:
    """Without a cache, as under ansible-operator: what exists is read from the API server."""
    resource = with_tensorboard()
    cluster = Cluster(resource)
    reconcile(context_of(cluster), resource, TENSORFLOW)
    (deployment,) = (each for each in cluster.objects.values() if each["kind"] == "Deployment")
    cluster.writes.clear()
    again = cluster.objects[_path(resource)]
    reconcile(context_of(cluster), again, TENSORFLOW)
    assert [path for method, path in cluster.writes if method in ("POST", "PUT")] == []
    deployment["metadata"]["annotations"]["dljob.operator/spec-hash"] = "older"
    reconcile(context_of(cluster), cluster.objects[_path(resource)], TENSORFLOW)
    assert [method for method, path in cluster.writes if "/deployments/" in path] == ["PUT"]


def test_a_tensorboard_that_somebody_else_has_replaced_meanwhile_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = with_tensorboard()
    cluster = Cluster(resource)
    reconcile(context_of(cluster), resource, TENSORFLOW)
    ((path, deployment),) = ((path, each) for path, each in cluster.objects.items() if each["kind"] == "Deployment")
    deployment["metadata"]["annotations"]["dljob.operator/spec-hash"] = "older"
    theirs = {
        **deployment,
        "metadata": {"name": deployment["metadata"]["name"], "uid": OTHER_UID, "resourceVersion": "1"},
    }
    put = cluster.put

    def replaced_meanwhile(at: str, present: Resource, *given: Any) -> Resource:
        if at == path:
            cluster.objects[path] = present = theirs
        return put(at, present, *given)

    monkeypatch.setattr(cluster, "put", replaced_meanwhile)
    outcome = reconcile(context_of(cluster), cluster.objects[_path(resource)], TENSORFLOW)
    assert cluster.objects[path] == theirs
    assert (outcome.ok, outcome.requeue_after is not None) == (True, True)
