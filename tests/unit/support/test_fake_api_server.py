"""The rules of the API server in memory. Each test states what the real server does (Kubernetes 1.35)."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import APPLY, JSON_PATCH, MERGE_PATCH
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from support import fake_api_server as fake
from support.fake_api_server import FakeApiServer, Fault

PODS = "/api/v1/namespaces/default/pods"
SERVICES = "/api/v1/namespaces/default/services"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
JOBS = "/apis/kubeflow.org/v1/namespaces/default/tfjobs"

Resource = dict[str, Any]


def manifest(kind: str, name: str = "a", owner: str = "", **fields: Any) -> Resource:
    reference = [{"uid": owner, "controller": True}] if owner else []
    return {"kind": kind, "metadata": {"name": name, "ownerReferences": reference}, **fields}


def pod(name: str = "a", **fields: Any) -> Resource:
    return manifest("Pod", name, spec={"containers": [], **fields})


def job(name: str = "j") -> Resource:
    return manifest("TFJob", name, spec={"a": 1}, status={"phase": "set by the user"})


@pytest.fixture
def server() -> FakeApiServer:
    return FakeApiServer()


def refused(server: FakeApiServer, *request: Any) -> tuple[int, str, str]:
    with pytest.raises(ApiError) as caught:
        server.request(*request)
    return caught.value.status, caught.value.reason, caught.value.message


def scheduled(server: FakeApiServer, **fields: Any) -> Resource:
    return server.request("POST", PODS, pod(nodeName="node", **fields))


def types(server: FakeApiServer) -> list[str]:
    return [f"{event.type} {event.object['metadata']['name']}" for event in server.watch_events]


# --- creation


def test_what_the_server_sets_on_creation(server: FakeApiServer) -> None:
    """It sets uid, creationTimestamp, resourceVersion and generation, and drops the status that a client sends.

    Pods have a generation since 1.33; Services and ConfigMaps have none.
    """
    made = server.request("POST", JOBS, job())
    assert made["metadata"]["uid"]
    assert (made["metadata"]["generation"], made["metadata"]["resourceVersion"]) == (1, "1")
    assert "status" not in made
    assert server.request("POST", PODS, pod())["status"] == {"phase": "Pending"}
    assert "generation" not in server.request("POST", SERVICES, manifest("Service"))["metadata"]


@pytest.mark.parametrize(
    ("path", "made", "details", "message"),
    [
        pytest.param(PODS, pod(), {"name": "a", "kind": "pods"}, 'pods "a" already exists', id="core"),
        pytest.param(
            JOBS,
            job("a"),
            {"name": "a", "group": "kubeflow.org", "kind": "tfjobs"},
            'tfjobs.kubeflow.org "a" already exists',
            id="custom",
        ),
    ],
)
def test_a_name_in_use(server: FakeApiServer, path: str, made: Resource, details: Resource, message: str) -> None:
    """Whoever owns the object: the server compares names only."""
    server.request("POST", path, made)
    assert server.send("POST", path, made).content == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": "AlreadyExists",
        "details": details,
        "code": 409,
    }


def test_a_name_stays_in_use_until_the_pod_is_gone(server: FakeApiServer) -> None:
    scheduled(server)
    server.request("DELETE", f"{PODS}/a")
    expected = (409, "AlreadyExists", 'object is being deleted: pods "a" already exists')
    assert refused(server, "POST", PODS, pod()) == expected
    server.request("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 0})  # the kubelet's last request
    assert server.request("POST", PODS, pod())["metadata"]["uid"] == "pod-a-2"


def test_a_generated_name(server: FakeApiServer) -> None:
    """The suffix is five random characters; here a counter."""
    made = server.request(
        "POST", "/api/v1/namespaces/default/events", {"kind": "Event", "metadata": {"generateName": "j."}}
    )
    assert made["metadata"]["name"] == "j.00001"


def test_an_invalid_name(server: FakeApiServer) -> None:
    """422; a Service's name must begin with a letter, a pod's may begin with a digit. The real message is longer."""
    server.request("POST", PODS, pod("1a"))
    status, reason, message = refused(server, "POST", SERVICES, manifest("Service", "1a"))
    assert (status, reason) == (422, "Invalid")
    assert message.startswith('Service "1a" is invalid: metadata.name: Invalid value: "1a"')


def test_another_namespace_in_the_body(server: FakeApiServer) -> None:
    made = pod()
    made["metadata"]["namespace"] = "other"
    assert refused(server, "POST", PODS, made)[:2] == (400, "BadRequest")


# --- admission


def test_quota(server: FakeApiServer) -> None:
    """Admission comes before the name: a name in use under a full quota is 403 too. Finished pods do not count."""
    server.admission.append(fake.pod_quota(1, "q"))
    scheduled(server)
    text = 'pods "a" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'
    assert refused(server, "POST", PODS, pod()) == (403, "Forbidden", text)
    server.request("DELETE", f"{PODS}/a")
    assert refused(server, "POST", PODS, pod("b"))[0] == 403, "a terminating pod counts"
    server.request("PATCH", f"{PODS}/a/status", {"status": {"phase": "Failed"}}, None, MERGE_PATCH)
    server.request("POST", PODS, pod("b"))


@pytest.mark.parametrize(("code", "reason"), [(400, "BadRequest"), (403, "Forbidden")])
def test_a_webhook_denies(server: FakeApiServer, code: int, reason: str) -> None:
    """400 where the webhook sets no code."""
    server.admission.append(lambda call, _: fake.denied_by_webhook("no", "w.example.com", code))
    assert refused(server, "POST", PODS, pod()) == (
        code,
        reason,
        'admission webhook "w.example.com" denied the request: no',
    )
    assert server.watch_events == []


# --- updates


def test_an_update_of_the_spec(server: FakeApiServer) -> None:
    """A new resourceVersion and generation; the status is not written."""
    made = server.request("POST", JOBS, job())
    changed = server.request("PUT", f"{JOBS}/j", {**made, "spec": {"a": 2}, "status": {"phase": "x"}})
    assert (changed["metadata"]["resourceVersion"], changed["metadata"]["generation"]) == ("2", 2)
    assert "status" not in changed


def test_an_update_of_labels_keeps_the_generation(server: FakeApiServer) -> None:
    server.request("POST", JOBS, job())
    changed = server.request("PATCH", f"{JOBS}/j", {"metadata": {"labels": {"a": "b"}}}, None, MERGE_PATCH)
    assert (changed["metadata"]["resourceVersion"], changed["metadata"]["generation"]) == ("2", 1)


def test_an_update_of_the_status_writes_nothing_else(server: FakeApiServer) -> None:
    made = server.request("POST", JOBS, job())
    changed = server.request("PUT", f"{JOBS}/j/status", {**made, "spec": {"a": 2}, "status": {"phase": "x"}})
    assert (changed["spec"], changed["status"], changed["metadata"]["generation"]) == ({"a": 1}, {"phase": "x"}, 1)


def test_an_update_without_a_change_keeps_the_version(server: FakeApiServer) -> None:
    """And sends no watch event."""
    made = server.request("POST", JOBS, job())
    assert server.request("PUT", f"{JOBS}/j", made)["metadata"]["resourceVersion"] == "1"
    assert types(server) == ["ADDED j"]


def test_an_update_of_an_older_version(server: FakeApiServer) -> None:
    made = server.request("POST", PODS, pod())
    server.request("PATCH", f"{PODS}/a", {"metadata": {"labels": {"a": "b"}}}, None, MERGE_PATCH)
    text = f'Operation cannot be fulfilled on pods "a": {fake.MODIFIED}'
    assert refused(server, "PUT", f"{PODS}/a", made) == (409, "Conflict", text)


def test_an_update_without_a_version(server: FakeApiServer) -> None:
    """Core kinds take it; custom resources do not."""
    server.request("POST", CONFIG_MAPS, manifest("ConfigMap", data={"a": "b"}))
    server.request("PUT", f"{CONFIG_MAPS}/a", manifest("ConfigMap", data={"a": "c"}))
    server.request("POST", JOBS, job())
    status, _, message = refused(server, "PUT", f"{JOBS}/j", job())
    assert (status, "must be specified for an update" in message) == (422, True)


def test_an_update_of_another_uid(server: FakeApiServer) -> None:
    made = server.request("POST", PODS, pod())
    other = {**made, "metadata": {**made["metadata"], "uid": "other"}}
    status, reason, message = refused(server, "PUT", f"{PODS}/a", other)
    assert (status, reason) == (409, "Conflict")
    assert message.endswith("Precondition failed: UID in precondition: other, UID in object meta: pod-a-1")


def test_an_update_of_what_does_not_exist(server: FakeApiServer) -> None:
    assert refused(server, "PUT", f"{JOBS}/j", job()) == (404, "NotFound", 'tfjobs.kubeflow.org "j" not found')


# --- patches


def status_patch(version: str) -> list[Resource]:
    """What the operator sends."""
    return [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
        {"op": "add", "path": "/status", "value": {"phase": "Running"}},
    ]


def test_a_json_patch_with_the_version(server: FakeApiServer) -> None:
    server.request("POST", JOBS, job())
    patched = server.request("PATCH", f"{JOBS}/j/status", status_patch("1"), None, JSON_PATCH)
    assert (patched["status"], patched["metadata"]["resourceVersion"]) == ({"phase": "Running"}, "2")
    text = f'Operation cannot be fulfilled on tfjobs.kubeflow.org "j": {fake.MODIFIED}'
    assert refused(server, "PATCH", f"{JOBS}/j/status", status_patch("1"), None, JSON_PATCH) == (409, "Conflict", text)


@pytest.mark.parametrize(
    "step",
    [
        pytest.param({"op": "test", "path": "/spec/a", "value": 2}, id="test"),
        pytest.param({"op": "replace", "path": "/spec/b", "value": 2}, id="no such path"),
    ],
)
def test_a_json_patch_that_does_not_apply(server: FakeApiServer, step: Resource) -> None:
    """422, not 409, and the message does not say which step failed."""
    server.request("POST", JOBS, job())
    text = "the server rejected our request due to an error in our request"
    assert refused(server, "PATCH", f"{JOBS}/j", [step], None, JSON_PATCH) == (422, "Invalid", text)


def test_a_patch_of_the_uid(server: FakeApiServer) -> None:
    server.request("POST", JOBS, job())
    step = {"op": "test", "path": "/metadata/uid", "value": "other"}
    assert refused(server, "PATCH", f"{JOBS}/j", [step], None, JSON_PATCH)[0] == 422
    step = {"op": "replace", "path": "/metadata/uid", "value": "other"}
    status, _, message = refused(server, "PATCH", f"{JOBS}/j", [step], None, JSON_PATCH)
    assert (status, "field is immutable" in message) == (422, True)


def test_an_unknown_patch(server: FakeApiServer) -> None:
    """Deviation: the real server knows server-side apply."""
    server.request("POST", JOBS, job())
    assert refused(server, "PATCH", f"{JOBS}/j", {}, None, APPLY)[:2] == (415, "UnsupportedMediaType")


# --- deletion


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        pytest.param(
            {"uid": "x"},
            "the UID in the precondition (x) does not match the UID in record (pod-a-1). The object might have been "
            "deleted and then recreated",
            id="uid",
        ),
        pytest.param(
            {"resourceVersion": "9"},
            "the ResourceVersion in the precondition (9) does not match the ResourceVersion in record (1). The object "
            "might have been modified",
            id="version",
        ),
    ],
)
def test_preconditions_of_a_deletion(server: FakeApiServer, wanted: Resource, message: str) -> None:
    server.request("POST", PODS, pod())
    expected = (409, "Conflict", f'Operation cannot be fulfilled on pods "a": {message}')
    assert refused(server, "DELETE", f"{PODS}/a", {"preconditions": wanted}) == expected
    assert types(server) == ["ADDED a"]


def test_a_running_pod_terminates(server: FakeApiServer) -> None:
    """DELETE returns it with the end of its grace period and the next generation; a second DELETE changes nothing."""
    scheduled(server, terminationGracePeriodSeconds=5)
    metadata = server.request("DELETE", f"{PODS}/a")["metadata"]
    assert (metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"]) == ("2026-01-02T12:00:05Z", 5)
    assert metadata["generation"] == 2
    assert server.request("DELETE", f"{PODS}/a")["metadata"] == metadata
    server.request("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 0})
    assert types(server) == ["ADDED a", "MODIFIED a", "DELETED a"]
    assert refused(server, "DELETE", f"{PODS}/a")[:2] == (404, "NotFound")


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
def test_a_pod_without_a_process_is_deleted_at_once(server: FakeApiServer, phase: str) -> None:
    """Not scheduled, or finished: no kubelet must stop it."""
    server.request("POST", PODS, pod(**({} if phase == "Pending" else {"nodeName": "node"})))
    server.request("PATCH", f"{PODS}/a/status", {"status": {"phase": phase}}, None, MERGE_PATCH)
    assert server.request("DELETE", f"{PODS}/a")["kind"] == "Pod"
    assert server.objects["default", "pods"] == {}


@pytest.mark.parametrize(
    ("path", "made", "kind"), [(SERVICES, manifest("Service"), "Service"), (JOBS, job("a"), "Status")]
)
def test_what_a_deletion_returns(server: FakeApiServer, path: str, made: Resource, kind: str) -> None:
    """Pods and Services return the object, most other kinds a Status with the uid."""
    server.request("POST", path, made)
    assert server.request("DELETE", f"{path}/a")["kind"] == kind


def test_finalizers(server: FakeApiServer) -> None:
    """The object stays, with a grace period of 0, until the last finalizer is removed; new ones are refused."""
    made = job()
    made["metadata"]["finalizers"] = ["example.com/one"]
    server.request("POST", JOBS, made)
    server.request("DELETE", f"{JOBS}/j")
    assert refused(server, "POST", JOBS, job())[2].startswith("object is being deleted: ")
    more = {"metadata": {"finalizers": ["example.com/one", "example.com/two"]}}
    assert refused(server, "PATCH", f"{JOBS}/j", more, None, MERGE_PATCH)[0] == 422
    server.request("PATCH", f"{JOBS}/j", {"metadata": {"finalizers": None}}, None, MERGE_PATCH)
    assert types(server) == ["ADDED j", "MODIFIED j", "DELETED j"]


# --- the garbage collector


def test_dependents_are_deleted_later(server: FakeApiServer) -> None:
    """Background, the default for custom resources and Pods: the owner goes at once, each dependent in its own step."""
    uid = server.request("POST", JOBS, job())["metadata"]["uid"]
    server.request("POST", SERVICES, manifest("Service", "s", uid))
    server.request("POST", CONFIG_MAPS, manifest("ConfigMap", "c", uid))
    server.request("POST", CONFIG_MAPS, manifest("ConfigMap", "not-owned"))
    assert not server.collect_garbage()
    server.request("DELETE", f"{JOBS}/j")
    while server.collect_garbage():
        pass
    assert types(server)[-3:] == ["DELETED j", "DELETED s", "DELETED c"]
    assert list(server.objects["default", "configmaps"]) == ["not-owned"]


def test_the_owner_waits_for_its_dependents(server: FakeApiServer) -> None:
    """``propagationPolicy: Foreground`` is a finalizer. Deviation: the real one ignores blockOwnerDeletion: false."""
    uid = server.request("POST", JOBS, job())["metadata"]["uid"]
    server.request("POST", SERVICES, manifest("Service", "s", uid))
    assert server.request("DELETE", f"{JOBS}/j", {"propagationPolicy": "Foreground"})["metadata"]["deletionTimestamp"]
    while server.collect_garbage():
        pass
    assert types(server)[-3:] == ["MODIFIED j", "DELETED s", "DELETED j"]


# --- reads


def test_lists_select_labels_and_have_a_version(server: FakeApiServer) -> None:
    """Deviation: items of core kinds have no apiVersion and kind in the real list."""
    for name in ("a", "b"):
        made = pod(name)
        made["metadata"]["labels"] = {"name": name}
        server.request("POST", PODS, made)
    listed = server.request("GET", PODS, None, {"labelSelector": "name=b"})
    assert [item["metadata"]["name"] for item in listed["items"]] == ["b"]
    assert listed["metadata"]["resourceVersion"] == "2"


def test_lists_without_a_namespace_have_the_objects_of_all(server: FakeApiServer) -> None:
    for namespace in ("default", "team"):
        server.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod())
    server.add(("", "nodes"), manifest("Node", "n"))
    listed = server.request("GET", "/api/v1/pods")
    assert [item["metadata"]["namespace"] for item in listed["items"]] == ["default", "team"]
    assert len(server.request("GET", PODS)["items"]) == 1
    assert server.request("GET", "/api/v1/nodes/n")["kind"] == "Node"
    assert refused(server, "GET", "/api/v1/nodes/m")[0] == 404


def test_watch_events_come_in_the_order_of_versions(server: FakeApiServer) -> None:
    """One counter for all kinds. The real server promises an order within a kind only."""
    server.request("POST", PODS, pod())
    server.request("POST", SERVICES, manifest("Service"))
    server.request("DELETE", f"{PODS}/a")
    assert [int(event.object["metadata"]["resourceVersion"]) for event in server.watch_events] == [1, 2, 3]
    assert types(server) == ["ADDED a", "ADDED a", "DELETED a"]


# --- errors that pass


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        pytest.param(
            fake.too_many_requests(3),
            (429, "", "Too many requests, please try again later."),
            id="priority and fairness: a text, not a Status",
        ),
        pytest.param(
            fake.internal_error(),
            (500, "InternalError", "Internal error occurred: etcdserver: request timed out"),
            id="etcd",
        ),
        pytest.param(fake.no_answer("connection reset"), (0, "NoAnswer", f"POST {PODS}: connection reset"), id="lost"),
    ],
)
@pytest.mark.parametrize("takes_effect", [False, True])
def test_faults(server: FakeApiServer, response: fake.Response, expected: Any, takes_effect: bool) -> None:
    """A client cannot know whether a write without an answer, or with 500, took effect. 429 never does."""
    server.faults.append(Fault(response, lambda call: call.plural == "pods", takes_effect))
    server.request("POST", SERVICES, manifest("Service"))
    assert refused(server, "POST", PODS, pod()) == expected
    assert ("a" in server.objects.get(("default", "pods"), {})) == takes_effect
    server.request("GET", PODS)


def test_retry_after(server: FakeApiServer) -> None:
    assert fake.too_many_requests(3).headers == {"Retry-After": "3"}


def test_a_copy_is_independent(server: FakeApiServer) -> None:
    server.request("POST", PODS, pod())
    twin = server.copy()
    twin.request("DELETE", f"{PODS}/a")
    assert (types(server), types(twin)) == (["ADDED a"], ["ADDED a", "DELETED a"])
