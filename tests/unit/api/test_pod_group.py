"""The requests for a job's PodGroup: on clusters that do not serve it, and where one exists already."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.cluster_info import OperatorSettings
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome, reconcile
from ansible_collections.dljob.operator.plugins.module_utils.shared.gang_scheduler import gang_scheduler
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from support.builders import NOW, PYTORCH, Resource, pytorchjob
from support.fake_api_server import Call, FakeApiServer, FakeRestClient, Fault, Response, failure

JOBS, GROUPS, PODS = (("default", plural) for plural in ("pytorchjobs", "podgroups", "pods"))
NAME = "example-job"
SCHEDULERS = pytest.mark.parametrize(
    ("scheduler", "api_version", "needs"),
    [
        ("volcano", "scheduling.volcano.sh/v1beta1", "install Volcano"),
        ("gang", "scheduling.x-k8s.io/v1alpha1", "install the coscheduling plugin of scheduler-plugins"),
        (
            "kubernetes",
            "scheduling.k8s.io/v1beta1",
            "its version v1beta1, and no other, is what gangs need: start the API server of Kubernetes 1.37 or newer "
            "with --runtime-config=scheduling.k8s.io/v1beta1=true, and it, the scheduler and the controller manager "
            "with --feature-gates=GenericWorkload=true, or start",
        ),
    ],
)


@pytest.fixture
def server() -> FakeApiServer:
    made = FakeApiServer(lambda: NOW)
    made.add(JOBS, pytorchjob(1, 2))
    return made


def run(server: FakeApiServer, scheduler: str = "volcano") -> Outcome:
    """A reconcile without an engine's cache."""
    settings = OperatorSettings(gang=gang_scheduler(scheduler))
    client = FakeRestClient(server)
    context = Context(client, Reader(client), settings, clock=lambda: NOW)
    return reconcile(context, server.objects[JOBS][NAME], PYTORCH)


def edit(server: FakeApiServer, **policy: Any) -> None:
    job = server.objects[JOBS][NAME]
    server.request(
        "PUT",
        f"/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/{NAME}",
        {**job, "spec": {**job["spec"], "runPolicy": {"schedulingPolicy": policy}}},
    )


def group(server: FakeApiServer) -> Resource:
    return server.objects[GROUPS][NAME]


def names(server: FakeApiServer) -> list[str]:
    return sorted(server.objects.get(PODS, {}))


@SCHEDULERS
def test_the_group_comes_before_the_pods(server: FakeApiServer, scheduler: str, api_version: str, needs: str) -> None:
    run(server, scheduler)
    made = [call.plural for call in server.calls if call.method == "POST" and call.plural in ("podgroups", "pods")]
    assert made == ["podgroups", "pods", "pods", "pods"]
    assert group(server)["apiVersion"] == api_version


@SCHEDULERS
def test_a_cluster_that_does_not_serve_it(server: FakeApiServer, scheduler: str, api_version: str, needs: str) -> None:
    """No pod starts alone, and the job goes on as soon as the definition is installed."""
    text = "the server could not find the requested resource"
    unserved = Fault(failure(404, "NotFound", text), lambda call: call.plural == "podgroups", times=99)
    server.faults.append(unserved)
    run(server, scheduler)
    assert names(server) == []
    status = server.objects[JOBS][NAME]["status"]
    group_name = api_version.partition("/")[0]
    assert f"PodGroup/{NAME}: {text}: the cluster has no podgroups.{group_name}; {needs}" in status["reason"]
    assert status["state"] != "Failed"
    server.faults.clear()
    run(server, scheduler)
    assert len(names(server)) == 3


def test_an_operator_without_the_rights(server: FakeApiServer) -> None:
    text = 'podgroups.scheduling.volcano.sh is forbidden: User "o" cannot create resource "podgroups" in API group '
    text += '"scheduling.volcano.sh" in the namespace "default"'
    denied = Fault(failure(403, "Forbidden", text), lambda call: (call.method, call.plural) == ("POST", "podgroups"))
    server.faults.append(denied)
    outcome = run(server)
    assert names(server) == []
    assert 'add to the operator\'s role: {apiGroups: ["scheduling.volcano.sh"]' in "".join(outcome.warnings)
    assert "the cluster has no" not in "".join(outcome.warnings)


@pytest.mark.parametrize("error", [failure(403, "Forbidden", "no"), failure(500, "InternalError", "no")])
def test_a_group_that_cannot_be_read_is_not_taken_for_absent(server: FakeApiServer, error: Response) -> None:
    run(server)
    server.faults.append(Fault(error, lambda call: (call.method, call.plural) == ("GET", "podgroups")))
    count = len(server.calls)
    with pytest.raises(ApiError, match="no"):
        run(server)
    assert {call.method for call in server.calls[count:]} == {"GET"}


def test_a_changed_policy_replaces_the_groups_spec(server: FakeApiServer) -> None:
    run(server)
    uid = group(server)["metadata"]["uid"]
    edit(server, minAvailable=2)
    run(server)
    assert (group(server)["spec"]["minMember"], group(server)["metadata"]["uid"]) == (2, uid)
    count = len(server.calls)
    run(server)
    assert not [call for call in server.calls[count:] if call.method != "GET"], "nothing is left to write"


def test_what_others_have_set_in_the_group_stays(server: FakeApiServer) -> None:
    """Volcano moves a new group to the queue of its namespace, annotates it, and has no subresource for its status."""
    edit(server, minAvailable=2, minResources={"cpu": 1}, priorityClass="high")
    run(server)
    made = group(server)
    theirs = {**made["metadata"], "annotations": {**made["metadata"]["annotations"], "volcano.sh/theirs": "1"}}
    server.objects[GROUPS][NAME] = {
        **made,
        "metadata": theirs,
        "spec": {**made["spec"], "queue": "team"},
        "status": {"phase": "Running"},
    }
    edit(server, minAvailable=3)
    run(server)
    found = group(server)
    assert found["spec"] == {"minMember": 3, "queue": "team"}
    assert found["metadata"]["annotations"]["volcano.sh/theirs"] == "1"
    (replaced,) = (call for call in server.calls if (call.method, call.plural) == ("PUT", "podgroups"))
    assert replaced.body["status"] == {"phase": "Running"}


def test_an_administrator_has_moved_the_group_to_another_queue(server: FakeApiServer) -> None:
    edit(server, queue="closed", minAvailable=2)
    run(server)
    assert group(server)["spec"]["queue"] == "closed"
    server.objects[GROUPS][NAME]["spec"]["queue"] = "open"
    edit(server, queue="closed", minAvailable=3)
    run(server)
    assert group(server)["spec"] == {"minMember": 3, "queue": "open"}


def test_a_group_that_changes_while_it_is_replaced(server: FakeApiServer) -> None:
    run(server)
    edit(server, minAvailable=2)
    changed = Fault(
        failure(409, "Conflict", "modified"), lambda call: (call.method, call.plural) == ("PUT", "podgroups")
    )
    server.faults.append(changed)
    outcome = run(server)
    assert (outcome.ok, group(server)["spec"]["minMember"]) == (True, 3)
    assert outcome.requeue_after is not None
    run(server)
    assert group(server)["spec"]["minMember"] == 2


@pytest.mark.parametrize("error", [failure(409, "Conflict", "modified"), failure(422, "Invalid", "no such queue")])
def test_no_pod_comes_before_its_group_has_grown(server: FakeApiServer, error: Response) -> None:
    run(server)
    job = server.objects[JOBS][NAME]
    replicas = job["spec"]["pytorchReplicaSpecs"]
    elastic = {"minReplicas": 1, "maxReplicas": 5}
    path = f"/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/{NAME}"
    for count in (2, 4):
        job = server.objects[JOBS][NAME]
        more = {**replicas, "Worker": {**replicas["Worker"], "replicas": count}}
        server.request("PUT", path, {**job, "spec": {"elasticPolicy": elastic, "pytorchReplicaSpecs": more}})
        if count == 2:
            server.objects[PODS].clear()
            run(server)
    server.faults.append(Fault(error, lambda call: (call.method, call.plural) == ("PUT", "podgroups")))
    run(server)
    assert (len(names(server)), group(server)["spec"]["minMember"]) == (3, 3)
    assert server.objects[JOBS][NAME]["status"]["state"] != "Failed"
    count = len(server.calls)
    run(server)
    made = [call.plural for call in server.calls[count:] if call.method in ("POST", "PUT") and call.plural != "events"]
    assert made == ["podgroups", "podgroups", "pods", "pods"], "tried to be created, replaced"
    assert group(server)["spec"]["minMember"] == 5


def test_the_group_of_another_operator_is_taken_over(server: FakeApiServer) -> None:
    """training-operator gives it the same name and owner."""
    job = server.objects[JOBS][NAME]
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": NAME, "uid": job["metadata"]["uid"]}
    found = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": NAME, "namespace": "default", "ownerReferences": [{**owner, "controller": True}]},
        "spec": {"minMember": 3},
    }
    server.add(GROUPS, found)
    uid = group(server)["metadata"]["uid"]
    run(server)
    assert group(server)["metadata"]["labels"]["dljob.operator/job-uid"] == job["metadata"]["uid"]
    run(server)
    assert (len(names(server)), group(server)["metadata"]["uid"]) == (3, uid)


def test_a_group_of_somebody_else_is_neither_used_nor_changed(server: FakeApiServer) -> None:
    """The job waits: users made PodGroups by themselves before the operator had a gang scheduler."""
    metadata = {"name": NAME, "namespace": "default"}
    theirs = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": metadata, "spec": {}}
    server.add(GROUPS, theirs)
    run(server)
    assert (names(server), group(server)["spec"]) == ([], {})
    status = server.objects[JOBS][NAME]["status"]
    assert f"PodGroup/{NAME}: an object of that name exists and does not belong to this job" in status["reason"]
    assert status["state"] != "Failed"


def native(server: FakeApiServer) -> Resource:
    """A job that runs with a group of Kubernetes itself, which this returns."""
    run(server, "kubernetes")
    return group(server)


def test_what_cannot_change_in_a_native_group_stays(server: FakeApiServer) -> None:
    """A changed size is written, with all that the API server has set, and a changed priority is not tried."""
    made = native(server)
    made["spec"]["disruptionMode"] = {"single": {}}  # as of another operator's group
    edit(server, minAvailable=2, priorityClass="low")
    run(server, "kubernetes")
    assert group(server)["spec"] == {**made["spec"], "schedulingPolicy": {"gang": {"minCount": 2}}}
    count = len(server.calls)
    run(server, "kubernetes")
    assert not [call for call in server.calls[count:] if call.method != "GET"], "nothing is left to write"


def test_a_native_group_that_terminates_is_nobody_elses(server: FakeApiServer) -> None:
    """The answer to its creation is 409, "object is being deleted"; and a cache may not have it any more."""
    made = native(server)
    path = f"/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups/{NAME}"
    server.request("DELETE", path)
    server.objects[PODS].clear()
    hidden = Fault(
        Response(200, {"items": []}), lambda call: (call.method, call.plural, call.name) == ("GET", "podgroups", "")
    )
    server.faults.append(hidden)
    outcome = run(server, "kubernetes")
    assert names(server) == []
    status = server.objects[JOBS][NAME]["status"]
    assert status["reason"] == f"waiting until PodGroup/{NAME}, which terminates, is gone"
    assert (outcome.ok, outcome.requeue_after) == (True, 5.0)
    assert server.release_groups()
    run(server, "kubernetes")
    assert len(names(server)) == 3
    assert group(server)["metadata"]["uid"] != made["metadata"]["uid"]
    run(server, "kubernetes")
    assert server.objects[JOBS][NAME]["status"]["reason"] == ""


def test_a_native_group_that_terminates_is_changed_while_its_pods_go_on(server: FakeApiServer) -> None:
    """A new pod would else wait for one that has ended, and the group for the pods."""
    made = native(server)
    server.request("DELETE", f"/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups/{NAME}")
    ended = server.objects[PODS]["example-job-worker-0"]
    ended["status"] = {"phase": "Succeeded", "containerStatuses": []}
    del server.objects[PODS]["example-job-worker-1"]
    run(server, "kubernetes")
    assert len(names(server)) == 3
    assert group(server)["spec"]["schedulingPolicy"]["gang"]["minCount"] == 2
    assert group(server)["metadata"]["uid"] == made["metadata"]["uid"]


def test_a_native_group_of_somebody_else(server: FakeApiServer) -> None:
    metadata = {"name": NAME, "namespace": "default"}
    theirs = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": metadata, "spec": {}}
    server.add(GROUPS, theirs)
    run(server, "kubernetes")
    assert names(server) == []
    assert (
        "an object of that name exists and does not belong to this job"
        in (server.objects[JOBS][NAME]["status"]["reason"])
    )


def test_an_operator_without_a_gang_scheduler_asks_for_no_group(server: FakeApiServer) -> None:
    run(server, "")

    def is_group(call: Call) -> bool:
        return call.plural == "podgroups"

    assert not list(filter(is_group, server.calls))
    assert len(names(server)) == 3
